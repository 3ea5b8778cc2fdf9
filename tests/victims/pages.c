// A program that treats the pages of a large block of its heap as its own: protects, drops, replaces and moves them.
#include "victim.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

enum { PAGE = 4096, PAGES = 64 };
static char *block;
static sigjmp_buf out;
static volatile int faults;

static void on_segv(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    CHECK(info->si_code == SEGV_ACCERR || info->si_code == SEGV_MAPERR);
    CHECK((char *)info->si_addr >= block && (char *)info->si_addr < block + PAGES * PAGE);
    faults++;
    siglongjmp(out, 1);
}

static void stamp(int page, unsigned seed) { fill(block + page * PAGE, 30, seed + page); }
static int stamped(int page, unsigned seed) { return filled(block + page * PAGE, 30, seed + page); }
static int zero(const char *bytes) {
    for (int i = 0; i < 30; i++)
        if (bytes[i] != 0) return 0;
    return 1;
}

int main(void) {
    CHECK(posix_memalign((void **)&block, PAGE, PAGES * PAGE) == 0);
    struct sigaction action = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    for (int i = 0; i < PAGES; i++) stamp(i, 1);

    // Read-only: reads go on, writes are the program's own faults.
    CHECK(mprotect(block + 4 * PAGE, 2 * PAGE, PROT_READ) == 0);
    CHECK(stamped(4, 1) && stamped(5, 1));
    if (sigsetjmp(out, 1) == 0) *(volatile char *)(block + 5 * PAGE + 9) = 1;
    CHECK(faults == 1);
    // No access at all, for the program and for the kernel.
    CHECK(mprotect(block + 4 * PAGE, PAGE, PROT_NONE) == 0);
    if (sigsetjmp(out, 1) == 0) (void)*(volatile char *)(block + 4 * PAGE);
    CHECK(faults == 2);
    int pipes[2];
    CHECK(pipe(pipes) == 0);
    CHECK(write(pipes[1], block + 4 * PAGE, 10) == -1 && errno == EFAULT);
    CHECK(write(pipes[1], "0123456789", 10) == 10);
    CHECK(read(pipes[0], block + 5 * PAGE, 10) == -1 && errno == EFAULT);
    CHECK(mprotect(block + 4 * PAGE, 2 * PAGE, PROT_READ | PROT_WRITE) == 0);
    CHECK(stamped(4, 1) && stamped(5, 1));
    stamp(4, 2), stamp(5, 2);
    CHECK(stamped(4, 2) && stamped(5, 2) && read(pipes[0], block + 5 * PAGE, 10) == 10);

    // Dropped pages read as zeroes.
    CHECK(madvise(block + 8 * PAGE, 4 * PAGE, MADV_DONTNEED) == 0);
    for (int i = 8; i < 12; i++) CHECK(zero(block + i * PAGE));
    CHECK(stamped(7, 1) && stamped(12, 1));
    stamp(9, 3);
    CHECK(stamped(9, 3));
    CHECK(madvise(block, PAGES * PAGE, MADV_WILLNEED) == 0);
    int advised = madvise(block, 2 * PAGE, MADV_FREE); // may stay or read as zero
    CHECK(advised == 0 || errno == EINVAL);
    stamp(0, 1), stamp(1, 1);

    // Replaced and removed pages.
    char *fixed = mmap(block + 16 * PAGE, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    CHECK(fixed == block + 16 * PAGE && zero(fixed) && zero(fixed + PAGE));
    stamp(17, 4);
    CHECK(stamped(17, 4) && stamped(15, 1) && stamped(18, 1));
    CHECK(munmap(block + 20 * PAGE, PAGE) == 0);
    if (sigsetjmp(out, 1) == 0) *(volatile char *)(block + 20 * PAGE) = 1;
    CHECK(faults == 3);
    CHECK(mmap(block + 20 * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
    stamp(20, 5);

    // Pages that move away, and leave a hole that is filled again.
    char *moved = mremap(block + 24 * PAGE, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
                         mmap(NULL, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK(moved != MAP_FAILED && filled(moved, 30, 25) && filled(moved + PAGE, 30, 26));
    moved[0] = 9;
    CHECK(mmap(block + 24 * PAGE, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
    CHECK(moved[0] == 9 && zero(block + 24 * PAGE));

    unsigned char *resident = malloc(PAGES);
    CHECK(mincore(block, PAGES * PAGE, resident) == 0 && (resident[17] & 1));
    CHECK(msync(block, PAGE, MS_ASYNC) == 0);
    CHECK(mlock(block, 2 * PAGE) == 0 && munlock(block, 2 * PAGE) == 0);
    CHECK(mprotect(block + 1, PAGE, PROT_READ) == -1 && errno == EINVAL);
    // The pages that nobody touched since are as they were; the block can be freed and its memory used again.
    for (int i = 30; i < PAGES; i++) CHECK(stamped(i, 1));
    free(block), free(resident);
    for (int i = 0; i < 4; i++) {
        char *again = malloc(PAGES * PAGE);
        for (int p = 0; p < PAGES; p++) again[p * PAGE] = 1;
        free(again);
    }
    say("ok");
    return 0;
}
