// The program uses gs for itself: its base points into the heap.
#include "victim.h"
#include <asm/prctl.h>
#include <sys/syscall.h>

int main(void) {
    uint64_t *words = calloc(8, sizeof *words), *base = malloc(sizeof *base);
    CHECK(syscall(SYS_arch_prctl, ARCH_SET_GS, words) == 0);
    CHECK(syscall(SYS_arch_prctl, ARCH_GET_GS, base) == 0 && *base == (uintptr_t)words);
    for (int i = 0; i < 50; i++) {
        uint64_t got;
        __asm__ volatile("incq %%gs:8\n mov %%gs:8, %0\n mov %0, %%gs:(%1)" : "=&r"(got) : "r"(16ul) : "memory", "cc");
        CHECK(got == (uint64_t)i + 1 && words[1] == got && words[2] == got);
        char *block = malloc(100);
        block[0] = 1;
        free(block);
        CHECK(getppid() > 0);
    }
    CHECK(syscall(SYS_arch_prctl, ARCH_GET_GS, base) == 0 && *base == (uintptr_t)words);
    say("ok");
    return 0;
}
