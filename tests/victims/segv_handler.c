// The program's own SIGSEGV handler sees the faults that are its own, as the kernel reports them.
#include "victim.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

static sigjmp_buf out;
static volatile int edit;
static volatile int code;
static char *volatile where;
static volatile uint64_t rip;
static volatile int *counter; // on the heap: the handler itself touches it

extern char faulting_load[], after_load[];

__attribute__((noinline)) static long load(const char *address) {
    long value;
    __asm__ volatile(
        ".globl faulting_load\n.globl after_load\n"
        "mov $77, %0\nfaulting_load: mov (%1), %0\nafter_load:\n"
        : "=&r"(value) : "r"(address) : "memory");
    return value;
}

static void on_segv(int signal, siginfo_t *info, void *context) {
    ucontext_t *c = context;
    (*counter)++;
    code = info->si_code;
    where = info->si_addr;
    rip = c->uc_mcontext.gregs[REG_RIP];
    if (signal != SIGSEGV) _exit(97);
    if (edit) c->uc_mcontext.gregs[REG_RIP] = (greg_t)after_load;
    else siglongjmp(out, 1);
}

static void expect(const char *address, char *reported, int expected_code) {
    for (edit = 0; edit < 2; edit++) {
        volatile long value = 77;
        where = (char *)1;
        if (sigsetjmp(out, 1) == 0) value = load(address);
        CHECK(value == 77);
        CHECK(where == reported);
        CHECK(code == expected_code);
        CHECK(rip == (uint64_t)faulting_load);
        // The heap still works after each of them.
        char *block = malloc(100);
        fill(block, 100, edit);
        CHECK(filled(block, 100, edit));
        free(block);
    }
}

int main(void) {
    counter = calloc(1, sizeof *counter);
    struct sigaction action = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    expect(NULL, NULL, SEGV_MAPERR);
    expect((char *)0x1234567, (char *)0x1234567, SEGV_MAPERR);
    char *closed = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    expect(closed + 123, closed + 123, SEGV_ACCERR);
    expect((char *)0x8000000000001000, NULL, SI_KERNEL);
    for (int i = 0; i < 100; i++) expect(closed + i, closed + i, SEGV_ACCERR);
    CHECK(*counter == 2 * 104);
    say("ok");
    return 0;
}
