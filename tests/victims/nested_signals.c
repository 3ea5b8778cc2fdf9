// Handlers that nest, mask each other, change registers, and leave the interrupted code's state as it was.
#include "victim.h"
#include <signal.h>
#include <ucontext.h>

static int *order, *length; // on the heap
static volatile sig_atomic_t due = 1;
static void note(int value) { order[(*length)++] = value; }

static void on_second(int signal) { note(signal == SIGUSR2 ? 2 : -2); }
static void on_first(int signal) {
    note(signal == SIGUSR1 ? 1 : -1);
    raise(SIGUSR2); // not masked: runs at once
    note(11);
    if (*length < 8) raise(SIGUSR1); // masked while its handler runs: runs afterwards
    note(12);
}
static void on_once(int signal) {
    static int again;
    note(20 + again);
    if (again++ < 3) raise(signal);
    note(30);
}
static void on_value(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    note(100 + info->si_value.sival_int);
}
static void on_trap_edit(int signal, siginfo_t *info, void *context) {
    ucontext_t *c = context;
    (void)signal, (void)info;
    c->uc_mcontext.gregs[REG_RAX] = 0x1234;
    c->uc_mcontext.gregs[REG_RIP] += 2; // over ud2
}

static void on_tick(int signal) {
    // Destroys every vector register that the interrupted code uses.
    (void)signal;
    volatile double *d = (volatile double *)order;
    double sum = 0;
    for (int i = 0; i < 8; i++) sum += d[40 + i] * 1.5;
    note(sum == 0 ? 7 : 8);
    (*length)--;
    due = 1;
    __asm__ volatile("pxor %%xmm0,%%xmm0\npxor %%xmm7,%%xmm7\npxor %%xmm15,%%xmm15" ::: "xmm0", "xmm7", "xmm15");
}

static void registers_survive(void) {
    signal(SIGALRM, on_tick);
    volatile uint64_t *cell = malloc(64);
    cell[0] = 0, cell[1] = 0x1111222233334444;
    for (int round = 0; round < 1500; round++) {
        if (due) due = 0, alarm_once(1000);
        uint64_t bad = 0;
        __asm__ volatile(
            "movq %[one], %%xmm0\n movq %[one], %%xmm7\n movq %[one], %%xmm15\n"
            "mov $0x55, %%r8\n mov %[one], %%r9\n mov %[one], -8(%%rsp)\n" // the red zone belongs to the program
            "stc\n"
            "mov (%[cell]), %%r10\n"
            "adc $0, %%r10\n" // the carry was kept over the access
            "mov %%r10, (%[cell])\n"
            "movq %%xmm0, %%r11\n sub %[one], %%r11\n or %%r11, %[bad]\n"
            "movq %%xmm7, %%r11\n sub %[one], %%r11\n or %%r11, %[bad]\n"
            "movq %%xmm15, %%r11\n sub %[one], %%r11\n or %%r11, %[bad]\n"
            "sub $0x55, %%r8\n or %%r8, %[bad]\n"
            "sub %[one], %%r9\n or %%r9, %[bad]\n"
            "mov -8(%%rsp), %%r11\n sub %[one], %%r11\n or %%r11, %[bad]\n"
            : [bad] "+&r"(bad) : [one] "r"(cell[1]), [cell] "r"(cell)
            : "r8", "r9", "r10", "r11", "xmm0", "xmm7", "xmm15", "memory", "cc");
        CHECK(bad == 0);
    }
    alarm_once(0);
    CHECK(cell[0] == 1500);
    free((void *)cell);
}

int main(void) {
    order = calloc(64, sizeof(double)), length = calloc(1, sizeof(int));
    signal(SIGUSR1, on_first), signal(SIGUSR2, on_second);
    CHECK(raise(SIGUSR1) == 0);
    signal(SIGUSR1, SIG_DFL);
    struct sigaction once = {.sa_handler = on_once, .sa_flags = SA_NODEFER};
    CHECK(sigaction(SIGHUP, &once, NULL) == 0 && raise(SIGHUP) == 0);
    struct sigaction value = {.sa_sigaction = on_value, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGRTMIN, &value, NULL) == 0);
    sigset_t block;
    sigemptyset(&block), sigaddset(&block, SIGRTMIN);
    CHECK(sigprocmask(SIG_BLOCK, &block, NULL) == 0);
    for (int i = 0; i < 5; i++) CHECK(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i}) == 0);
    CHECK(sigprocmask(SIG_UNBLOCK, &block, NULL) == 0);
    struct sigaction edit = {.sa_sigaction = on_trap_edit, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGILL, &edit, NULL) == 0);
    long rax = 1;
    __asm__ volatile("ud2" : "+a"(rax));
    CHECK(rax == 0x1234);
    for (int i = 0; i < *length; i++) printf("%d ", order[i]);
    printf("\n");
    fflush(stdout);
    registers_survive();
    say("ok");
    return 0;
}
