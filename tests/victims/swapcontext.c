// Coroutines by makecontext and swapcontext, contexts and stacks on the heap.
#include "victim.h"
#include <signal.h>
#include <ucontext.h>

enum { ROUTINES = 4, ROUNDS = 25, SIZE = 64 << 10 };
static ucontext_t *contexts[ROUTINES], *home;
static unsigned *sums;

static void on_user(int signal) { sums[0] += signal == SIGUSR1; }

static void routine(int index) {
    for (int i = 0; i < ROUNDS; i++) {
        sums[index] += i;
        if (i == 5) raise(SIGUSR1);
        CHECK(swapcontext(contexts[index], home) == 0);
    }
}

int main(void) {
    sums = calloc(ROUTINES, sizeof *sums);
    home = malloc(sizeof *home);
    signal(SIGUSR1, on_user);
    for (int i = 0; i < ROUTINES; i++) {
        contexts[i] = malloc(sizeof **contexts);
        CHECK(getcontext(contexts[i]) == 0);
        contexts[i]->uc_stack.ss_sp = malloc(SIZE);
        contexts[i]->uc_stack.ss_size = SIZE;
        contexts[i]->uc_link = home;
        makecontext(contexts[i], (void (*)(void))routine, 1, i);
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < ROUTINES; i++) CHECK(swapcontext(home, contexts[i]) == 0);
    for (int i = 0; i < ROUTINES; i++) printf("%u\n", sums[i]);
    return 0;
}
