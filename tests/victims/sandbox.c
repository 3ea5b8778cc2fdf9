//! run: filter => exit 0
//! run: strict => exit 7
//! run: strict-heap => exit 7
// Programs that lock themselves in: protections of the heap can still change, and strict mode leaves four system calls.
#include "victim.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static void filter(void) {
    char *page = memalign(4096, 8192);
    page[0] = 1;
    CHECK(mprotect(page, 4096, PROT_READ) == 0);
    struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {1, code};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    CHECK(page[0] == 1 && mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0);
    *OPAQUE(page) = 2;
    CHECK(*OPAQUE(page) == 2);
}

int main(int count, char **arguments) {
    CHECK(count == 2);
    if (strcmp(arguments[1], "filter") == 0) {
        filter();
        say("ok");
        return 0;
    }
    const char *text = strcmp(arguments[1], "strict") == 0 ? "strict" : strdup("strict with a heap");
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
    say(text);
    syscall(SYS_exit, 7); // not exit_group, which strict mode forbids
}
