//! flags: -pthread
// A thread whose whole stack, and whose signal frames, lie in a malloc'ed block.
#include "victim.h"
#include <pthread.h>
#include <signal.h>

static volatile int hits;
static char *stack;
enum { SIZE = 128 << 10 };

static void on_user(int signal) {
    char local[100];
    fill(OPAQUE(&local[0]), sizeof local, signal);
    CHECK(local > stack && local < stack + SIZE && filled(local, sizeof local, signal));
    hits++;
}

__attribute__((noinline)) static unsigned depth(unsigned n) {
    volatile unsigned own = n;
    return n == 0 ? 0 : depth(n - 1) + own;
}

static void *work(void *argument) {
    char text[64];
    snprintf(text, sizeof text, "%d", (int)depth(100));
    CHECK(strcmp(text, "5050") == 0);
    for (int i = 0; i < 5; i++) CHECK(raise(SIGUSR1) == 0);
    char *block = strdup(text);
    CHECK(strcmp(block, text) == 0);
    free(block);
    CHECK(write(1, text, strlen(text)) == (ssize_t)strlen(text));
    return argument;
}

int main(void) {
    CHECK(signal(SIGUSR1, on_user) == SIG_DFL);
    for (int i = 0; i < 3; i++) {
        CHECK(posix_memalign((void **)&stack, 4096, SIZE) == 0);
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        CHECK(pthread_attr_setstack(&attributes, stack, SIZE) == 0);
        pthread_t thread;
        void *result;
        CHECK(pthread_create(&thread, &attributes, work, stack) == 0);
        CHECK(pthread_join(thread, &result) == 0 && result == stack);
        free(stack);
    }
    CHECK(hits == 15);
    say(" ok");
    return 0;
}
