//! flags: -pthread
//! run: read => exit 0
//! run: die => exit 0
// fork at a bad moment: while the kernel fills the heap for other threads, while a signal ends the process.
#include "victim.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

enum { SIZE = 4 << 20, FORKS = 30, DEATHS = 6 };
static _Atomic int stop;

static void fork_and_wait(void) {
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) _exit(5);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5);
}

static void *fill_by_kernel(void *null) {
    char *buffer = malloc(65536);
    int zero = open("/dev/zero", O_RDONLY);
    while (!stop) CHECK(read(zero, buffer, 4096) == 4096);
    return null;
}

static void *fork_forever(void *null) {
    for (;;) fork_and_wait();
    return null;
}

static void die_while_forking(int milliseconds) {
    pthread_t thread;
    int status;
    pid_t child = fork();
    if (child == 0) {
        CHECK(pthread_create(&thread, NULL, fork_forever, NULL) == 0);
        for (;;) pause();
    }
    usleep(1000 * milliseconds);
    CHECK(kill(child, SIGTERM) == 0);
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

int main(int count, char **arguments) {
    pthread_t threads[2];
    CHECK(count == 2);
    memset(OPAQUE(malloc(SIZE)), 1, SIZE); // something to copy
    if (strcmp(arguments[1], "read") == 0) {
        for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, fill_by_kernel, NULL) == 0);
        for (int i = 0; i < FORKS; i++) fork_and_wait();
        stop = 1;
        for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    } else {
        for (int i = 0; i < DEATHS; i++) die_while_forking(20 + 3 * i);
    }
    say("ok");
    return 0;
}
