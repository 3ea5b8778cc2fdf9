/* Call chains of known shape. Each exported function ends up calling the probe that it is given. */
#define _GNU_SOURCE
#include <alloca.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

typedef void probe_fn(void);

#ifndef PAD
#define PAD 40
#endif

#define OUT __attribute__((noinline, noclone, visibility("default")))
/* Keeps the call before it from becoming a tail call, and memory from being optimised away. */
#define BARRIER(p) __asm__ volatile("" : : "r"(p) : "memory")

OUT void leaf(probe_fn *probe) {
    char pad[PAD];
    BARRIER(pad);
    probe();
    BARRIER(pad);
}

OUT int middle(probe_fn *probe, int a, int b, int c) {
    char pad[200];
    memset(pad, a, sizeof pad);
    BARRIER(pad);
    leaf(probe);
    BARRIER(pad);
    return a * b + c;
}

OUT int chain(probe_fn *probe) { return middle(probe, 1, 2, 3) + 1; }

OUT int recurse(probe_fn *probe, int depth) {
    char pad[24 + PAD];
    BARRIER(pad);
    if (depth)
        recurse(probe, depth - 1);
    else
        leaf(probe);
    BARRIER(pad);
    return depth;
}

OUT int deep(probe_fn *probe) { return recurse(probe, 40) + 1; }

OUT int dynamic(probe_fn *probe, int n) {
    char *pad = alloca(n * 16 + 1);
    int vla[n + 3];
    memset(pad, 1, n);
    BARRIER(vla);
    BARRIER(pad);
    leaf(probe);
    BARRIER(vla);
    return pad[0];
}

OUT int allocas(probe_fn *probe) { return dynamic(probe, 37) + dynamic(probe, 3); }

OUT int realigned_inner(probe_fn *probe, char *outer) {
    _Alignas(128) char pad[128];
    memset(pad, outer[0], sizeof pad);
    BARRIER(pad);
    leaf(probe);
    BARRIER(pad);
    return pad[1];
}

OUT int realigned(probe_fn *probe) {
    _Alignas(64) char pad[64] = {1};
    char *more = alloca(pad[0] * 48);
    BARRIER(more);
    BARRIER(pad);
    int r = realigned_inner(probe, pad);
    BARRIER(pad);
    return r + 1;
}

OUT void tail_target(probe_fn *probe) { probe(); }

OUT void tail(probe_fn *probe) { tail_target(probe); }

OUT int tail_calls(probe_fn *probe) {
    tail(probe);
    BARRIER(probe);
    return 1;
}

static jmp_buf back;

OUT __attribute__((noreturn)) void never_returns(probe_fn *probe) {
    leaf(probe);
    longjmp(back, 1);
}

/* The call is the last instruction: the return address lies in the next function. */
OUT __attribute__((noreturn)) void ends_in_call(probe_fn *probe) { never_returns(probe); }

OUT int last_call(probe_fn *probe) {
    if (!setjmp(back))
        ends_in_call(probe);
    return 1;
}

static probe_fn *current;

OUT int compare(const void *a, const void *b) {
    leaf(current);
    BARRIER(a);
    return *(const int *)a - *(const int *)b;
}

OUT int sorting(probe_fn *probe) {
    int numbers[] = {3, 1, 2};
    current = probe;
    qsort(numbers, 3, sizeof *numbers, compare);
    return numbers[0];
}

OUT void on_signal(int signal) {
    middle(current, signal, 2, 3);
    BARRIER(&signal);
}

OUT int signalled(probe_fn *probe) {
    struct sigaction action = {.sa_handler = on_signal}, old;
    current = probe;
    sigaction(SIGUSR1, &action, &old);
    raise(SIGUSR1);
    sigaction(SIGUSR1, &old, NULL);
    return 1;
}

/* A handler on a stack of its own, called from the middle of a function rather than from a system call. */
OUT int trapped(probe_fn *probe) {
    static char stack[65536];
    stack_t mine = {.ss_sp = stack, .ss_size = sizeof stack}, old_stack;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK}, old;
    current = probe;
    sigaltstack(&mine, &old_stack);
    sigaction(SIGTRAP, &action, &old);
    __asm__ volatile("int3" : : : "memory");
    sigaction(SIGTRAP, &old, NULL);
    old_stack.ss_flags = old_stack.ss_flags & ~SS_ONSTACK;
    sigaltstack(&old_stack, NULL);
    return 1;
}

/* Interrupted at its first instruction, before which lies no function. */
__asm__(".text\n"
        ".p2align 4\n"
        ".skip 16, 0xcc\n"
        ".globl first_instruction\n"
        ".type first_instruction, @function\n"
        "first_instruction:\n"
        ".cfi_startproc\n"
        "ud2\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size first_instruction, . - first_instruction\n");
void first_instruction(void);

OUT void on_fault(int signal, siginfo_t *info, void *context) {
    ucontext_t *at = context;
    chain(current);
    at->uc_mcontext.gregs[REG_RIP] += 2;
    BARRIER(info);
    BARRIER(&signal);
}

OUT int faulted(probe_fn *probe) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, old;
    current = probe;
    sigaction(SIGILL, &action, &old);
    first_instruction();
    sigaction(SIGILL, &old, NULL);
    return 1;
}

static ucontext_t outside, inside;

OUT void coroutine(void) {
    chain(current);
    BARRIER(&inside);
}

OUT int switched(probe_fn *probe) {
    size_t size = 65536;
    char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    current = probe;
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = size;
    inside.uc_link = &outside;
    makecontext(&inside, coroutine, 0);
    swapcontext(&outside, &inside);
    munmap(stack, size);
    return 1;
}
