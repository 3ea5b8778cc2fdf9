//! flags: -pthread
// Handlers run on alternate stacks that lie in the heap, and recover there from an overflow of the main stack.
#include "victim.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>

enum { SIZE = 256 << 10 };
static __thread char *stack;
static __thread sigjmp_buf out;
static __thread volatile int hits;

static int inside(void *address) { return (char *)address >= stack && (char *)address < stack + SIZE; }

static void on_user(int signal) {
    char local[512];
    stack_t current;
    fill(OPAQUE(&local[0]), sizeof local, signal);
    CHECK(inside(local) && filled(local, sizeof local, signal));
    CHECK(sigaltstack(NULL, &current) == 0);
    CHECK(current.ss_sp == stack && current.ss_size == SIZE && (current.ss_flags & SS_ONSTACK));
    CHECK(sigaltstack(&current, NULL) == -1 && errno == EPERM);
    hits++;
}

static void on_segv(int signal, siginfo_t *info, void *context) {
    char local[64];
    (void)signal, (void)info, (void)context;
    CHECK(inside(OPAQUE(&local[0])));
    hits++;
    siglongjmp(out, 1);
}

__attribute__((noinline)) static long overflow(long depth) {
    volatile char frame[4096];
    frame[0] = (char)depth;
    return depth > 0 ? overflow(depth + 1) + frame[0] : 0;
}

static void *work(void *unused) {
    stack = malloc(SIZE);
    stack_t mine = {.ss_sp = stack, .ss_size = SIZE}, old;
    CHECK(sigaltstack(&mine, &old) == 0 && (old.ss_flags & SS_DISABLE));
    for (int i = 0; i < 20; i++) CHECK(raise(SIGUSR1) == 0);
    CHECK(hits == 20);
    for (int i = 0; i < 3; i++)
        if (sigsetjmp(out, 1) == 0) overflow(1);
    CHECK(hits == 23);
    CHECK(sigaltstack(NULL, &old) == 0 && old.ss_sp == stack && !(old.ss_flags & SS_ONSTACK));
    stack_t off = {.ss_flags = SS_DISABLE};
    CHECK(sigaltstack(&off, &old) == 0 && old.ss_sp == stack);
    CHECK(sigaltstack(NULL, &old) == 0 && (old.ss_flags & SS_DISABLE));
    free(stack);
    return unused;
}

int main(void) {
    struct sigaction action = {.sa_handler = on_user, .sa_flags = SA_ONSTACK};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    struct sigaction segv = {.sa_sigaction = on_segv, .sa_flags = SA_ONSTACK | SA_SIGINFO};
    CHECK(sigaction(SIGSEGV, &segv, NULL) == 0);
    work(NULL);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, work, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    say("ok");
    return 0;
}
