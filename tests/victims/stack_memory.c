//! flags: -pthread
//! run: fork => exit 0
//! run: reuse => exit 0
// A thread whose stack is a block of the heap forks; and once it is gone, that memory serves again as any other.
#include "victim.h"
#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>

enum { SMALL = 256 << 10, LARGE = 8 << 20, STEP = 64 << 10 };

static void *nothing(void *argument) { return argument; }

static void *forks(void *argument) {
    for (int i = 0; i < 3; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            for (volatile int turn = 0; turn < 1000; turn++) {} // accesses the stack
            _exit(5);
        }
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5);
    }
    return argument;
}

// Runs a thread to its end on a new block of the heap, which it returns.
static char *run(void *(*start)(void *), size_t size) {
    char *stack = memalign(4096, size);
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    CHECK(pthread_attr_setstack(&attributes, stack, size) == 0);
    CHECK(pthread_create(&thread, &attributes, start, NULL) == 0 && pthread_join(thread, NULL) == 0);
    return stack;
}

int main(int count, char **arguments) {
    CHECK(count == 2);
    if (strcmp(arguments[1], "fork") == 0) {
        free(run(forks, SMALL));
        say("forked");
        return 0;
    }
    for (int round = 0; round < 3; round++) {
        free(run(nothing, LARGE));
        malloc_trim(0);
        char *again = OPAQUE((char *)memalign(4096, LARGE));
        for (int i = 0; i < LARGE; i += STEP) again[i] = (char)(i / STEP);
        for (int i = 0; i < LARGE; i += STEP) CHECK(OPAQUE(again)[i] == (char)(i / STEP));
        again[LARGE - 1] = 1;
        free(again);
    }
    say("used again");
    return 0;
}
