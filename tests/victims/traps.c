// SIGTRAP belongs to the program too: int3, raise, and single steps of its own.
#include "victim.h"
#include <signal.h>
#include <ucontext.h>

static volatile int breakpoints, raised;
static volatile int *steps; // on the heap: stepping goes on over heap accesses
static uint64_t last;
extern char after_int3[];

static void on_trap(int signal, siginfo_t *info, void *context) {
    ucontext_t *c = context;
    CHECK(signal == SIGTRAP);
    last = c->uc_mcontext.gregs[REG_RIP];
    if (info->si_code == SI_KERNEL) breakpoints++;
    else if (info->si_code == TRAP_TRACE || info->si_code == TRAP_BRKPT) ++*steps;
    else if (info->si_code == SI_TKILL || info->si_code == SI_USER) raised++;
    else _exit(97);
}

int main(void) {
    steps = calloc(1, sizeof *steps);
    uint64_t *cell = calloc(2, sizeof *cell);
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGTRAP, &action, NULL) == 0);
    for (int i = 0; i < 10; i++) {
        __asm__ volatile("int3\n.globl after_int3\nafter_int3:" ::: "memory");
        CHECK(last == (uint64_t)after_int3);
        cell[0]++;
    }
    CHECK(raise(SIGTRAP) == 0 && kill(getpid(), SIGTRAP) == 0);
    CHECK(breakpoints == 10 && raised == 2);
    // Trap flag on, a few instructions with two heap accesses, trap flag off.
    __asm__ volatile(
        "lea -128(%%rsp), %%rsp\n"
        "pushfq\n orq $0x100, (%%rsp)\n popfq\n" // traps from the instruction after popfq on
        "nop\n"
        "incq (%0)\n"
        "mov (%0), %%rax\n"
        "nop\n"
        "pushfq\n andq $~0x100, (%%rsp)\n popfq\n"
        "lea 128(%%rsp), %%rsp\n" ::"r"(cell) : "rax", "memory", "cc");
    printf("%d steps, cell %d\n", *steps, (int)cell[0]);
    CHECK(signal(SIGTRAP, SIG_DFL) != SIG_ERR);
    say("ok");
    return 0;
}
