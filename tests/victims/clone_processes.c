// Processes made by clone and clone3 with unusual flags: shared memory, handlers reset, no exit signal.
#include "victim.h"
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { SIZE = 16 << 20, ROUNDS = 5 };
static char stack[65536];
static volatile int *block;

static void on_user(int signal) { _exit(98); }

static int child_of_shared_memory(void *null) {
    *block = 2;
    _exit(6);
}

static int ended(pid_t child) {
    int status;
    CHECK(child > 0 && waitpid(child, &status, __WALL) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

int main(void) {
    block = malloc(SIZE);
    *block = 1;
    CHECK(ended(clone(child_of_shared_memory, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL)) == 6 && *block == 2);
    *block = 3;

    CHECK(signal(SIGUSR1, on_user) == SIG_DFL && signal(SIGUSR2, SIG_IGN) == SIG_DFL);
    struct clone_args *request = calloc(1, sizeof *request);
    request->flags = CLONE_CLEAR_SIGHAND, request->exit_signal = SIGCHLD;
    pid_t child = syscall(SYS_clone3, request, sizeof *request);
    if (child == 0) {
        struct sigaction action;
        CHECK(*block == 3 && sigaction(SIGUSR1, NULL, &action) == 0 && action.sa_handler == SIG_DFL);
        CHECK(sigaction(SIGUSR2, NULL, &action) == 0 && action.sa_handler == SIG_IGN);
        *block = 4;
        _exit(7);
    }
    CHECK(ended(child) == 7 && *block == 3 && request->flags == CLONE_CLEAR_SIGHAND);

    // The parent goes on at once, but what it writes then is not the child's.
    volatile int *far = block + SIZE / sizeof *block - 1;
    for (int i = 0; i < ROUNDS; i++) {
        *far = 7;
        child = syscall(SYS_clone, 0, NULL, NULL, NULL, 0);
        if (child == 0) _exit(*far == 7 ? 8 : 9);
        *far = 9;
        CHECK(ended(child) == 8);
    }
    say("ok");
    return 0;
}
