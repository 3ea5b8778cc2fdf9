// A thread made by the clone system call itself, without libc: its stack and its tid word lie in the heap.
#include "victim.h"
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>

enum { SIZE = 64 << 10, ROUNDS = 500 };

// Runs on the new stack: counts in the heap, writes a word to a descriptor, exits. No libc, no thread-local storage.
__attribute__((naked, noinline)) static long start(unsigned long flags, char *top, int *tid, uint64_t *words) {
    __asm__ volatile(
        "mov %%rcx, %%r8\n" // words: must outlive the system call, which overwrites rcx
        "mov %%rdx, %%r10\n mov $56, %%eax\n syscall\n"
        "test %%rax, %%rax\n jz 1f\n ret\n"
        "1: push %%r8\n pop %%r9\n" // the heap stack
        "mov $500, %%ebx\n"
        "2: incq (%%r9)\n dec %%ebx\n jnz 2b\n"
        "mov 8(%%r9), %%rdi\n lea 16(%%r9), %%rsi\n mov $4, %%edx\n mov $1, %%eax\n syscall\n"
        "mov %%rax, 24(%%r9)\n"
        "xor %%edi, %%edi\n mov $60, %%eax\n syscall\n ud2\n" ::: "memory");
}

int main(void) {
    int pipes[2];
    CHECK(pipe(pipes) == 0);
    for (int i = 0; i < 5; i++) {
        char *stack = malloc(SIZE), *buffer = malloc(8);
        int *tid = malloc(sizeof *tid);
        uint64_t *words = calloc(4, sizeof *words);
        *tid = -1;
        words[1] = pipes[1];
        memcpy(&words[2], "word", 4);
        unsigned long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                              CLONE_CHILD_CLEARTID;
        long thread = start(flags, stack + SIZE, tid, words);
        CHECK(thread > 0);
        int seen;
        while ((seen = *(volatile int *)tid) != 0) syscall(SYS_futex, tid, FUTEX_WAIT, seen, NULL, NULL, 0);
        CHECK(words[0] == ROUNDS && words[3] == 4);
        CHECK(read(pipes[0], buffer, 8) == 4 && memcmp(buffer, "word", 4) == 0);
        free(stack), free(buffer), free(tid), free(words);
    }
    say("ok");
    return 0;
}
