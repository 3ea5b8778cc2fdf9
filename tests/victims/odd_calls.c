//! flags: -ldl
// Calls that meet the heap from the side: a library bound past the allocator, forks without a descriptor or a file to be
// had, locked memory, a signal of the monitor's that is waited for, errno across malloc, alignments that are none.
#include "victim.h"
#include <dlfcn.h>
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void bound_deep(const char *self) {
    char *path = malloc(strlen(self) + 20);
    strcpy(path, self);
    strcpy(strrchr(path, '/') + 1, "plugin");
    void *library = dlopen(path, RTLD_NOW | RTLD_DEEPBIND);
    CHECK(library);
    void (*release)(void *) = (void (*)(void *))dlsym(library, "plugin_free");
    CHECK(release);
    release(path);
    CHECK(dlclose(library) == 0);
}

// In a child that cannot open or extend a file, a grandchild has a heap of its own all the same.
static void forks_under(int resource, rlim_t most) {
    int *value = malloc(sizeof *value), status;
    *value = 1;
    pid_t child = fork();
    if (child == 0) {
        signal(SIGXFSZ, SIG_IGN);
        CHECK(setrlimit(resource, &(struct rlimit){most, most}) == 0);
        pid_t grandchild = fork();
        if (grandchild == 0) {
            *value = 7;
            _exit(*value);
        }
        CHECK(grandchild > 0 && waitpid(grandchild, &status, 0) == grandchild);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7 && *value == 1);
        _exit(5);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5);
    free(value);
}

static void waits_for(int number) {
    sigset_t *set = malloc(sizeof *set);
    siginfo_t *info = malloc(sizeof *info);
    sigemptyset(set), sigaddset(set, number);
    CHECK(sigprocmask(SIG_BLOCK, set, NULL) == 0 && kill(getpid(), number) == 0);
    CHECK(sigwaitinfo(set, info) == number && info->si_signo == number && info->si_pid == getpid());
    CHECK(sigtimedwait(set, info, &(struct timespec){0, 1000000}) == -1 && errno == EAGAIN);
    CHECK(sigprocmask(SIG_UNBLOCK, set, NULL) == 0);
    free(set), free(info);
}

int main(int count, char **arguments) {
    (void)count;
    errno = 0;
    char *first = malloc(10);
    CHECK(errno == 0 && first);
    free(first);
    CHECK(errno == 0);
    void *rounded = memalign(24, 100);
    CHECK(rounded && (uintptr_t)rounded % 32 == 0 && errno == 0);
    free(rounded);
    bound_deep(arguments[0]);
    forks_under(RLIMIT_NOFILE, 3);
    forks_under(RLIMIT_FSIZE, 4096);
    int numbers[] = {SIGSEGV, SIGBUS, SIGTRAP, SIGSYS, SIGUSR1};
    for (int i = 0; i < 5; i++) waits_for(numbers[i]);
    if (geteuid() == 0) CHECK(mlockall(MCL_CURRENT | MCL_FUTURE) == 0 && munlockall() == 0);
    say("ok");
    return 0;
}
