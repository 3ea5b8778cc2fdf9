// The program's own seccomp filter, which turns one system call into SIGSYS and refuses another.
#include "victim.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

#ifndef SYS_SECCOMP
#define SYS_SECCOMP 1
#endif
static volatile int *trapped; // on the heap
static volatile int number;
static void *volatile caller;

static void on_sys(int signal, siginfo_t *info, void *context) {
    ucontext_t *c = context;
    CHECK(signal == SIGSYS && info->si_code == SYS_SECCOMP);
    number = info->si_syscall;
    caller = info->si_call_addr;
    ++*trapped;
    c->uc_mcontext.gregs[REG_RAX] = 4321;
}

int main(void) {
    trapped = calloc(1, sizeof *trapped);
    struct sigaction action = {.sa_sigaction = on_sys, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGSYS, &action, NULL) == 0);
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP | 5),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpgrp, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOTTY),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_filter *filter = malloc(sizeof code);
    memcpy(filter, code, sizeof code);
    struct sock_fprog *program = malloc(sizeof *program);
    *program = (struct sock_fprog){sizeof code / sizeof *code, filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program) == 0);
    for (int i = 0; i < 10; i++) {
        CHECK(syscall(SYS_getppid) == 4321 && number == SYS_getppid && *trapped == i + 1 && caller != NULL);
        CHECK(syscall(SYS_getpgrp) == -1 && errno == ENOTTY);
        CHECK(syscall(SYS_getpid) == getpid());
    }
    char *block = malloc(50000);
    fill(block + 40000, 100, 1);
    CHECK(filled(block + 40000, 100, 1));
    free(block);
    say("ok");
    return 0;
}
