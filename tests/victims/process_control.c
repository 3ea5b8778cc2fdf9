// prctl and its kin, with strings and results on the heap.
#include "victim.h"
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

int main(void) {
    char *name = strdup("thermal-victim"), *got = calloc(1, 16);
    int *word = calloc(1, sizeof *word);
    CHECK(prctl(PR_SET_NAME, name) == 0 && prctl(PR_GET_NAME, got) == 0 && strcmp(got, name) == 0);
    CHECK(prctl(PR_GET_DUMPABLE) == 1 && prctl(PR_SET_DUMPABLE, 0) == 0 && prctl(PR_GET_DUMPABLE) == 0);
    CHECK(prctl(PR_SET_PDEATHSIG, SIGUSR1) == 0 && prctl(PR_GET_PDEATHSIG, word) == 0 && *word == SIGUSR1);
    CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 && prctl(PR_GET_CHILD_SUBREAPER, word) == 0 && *word == 1);
    struct rlimit *limit = malloc(sizeof *limit);
    CHECK(getrlimit(RLIMIT_NOFILE, limit) == 0);
    limit->rlim_cur = 64;
    CHECK(setrlimit(RLIMIT_NOFILE, limit) == 0 && getrlimit(RLIMIT_NOFILE, limit) == 0 && limit->rlim_cur == 64);
    int fds[64], count = 0; // the runtime keeps no low descriptor for itself
    while ((fds[count] = dup(0)) >= 0) count++;
    CHECK(errno == EMFILE);
    while (count > 0) close(fds[--count]);
    // An undumpable process still forks, and its child dies as it should.
    pid_t child = fork();
    if (child == 0) {
        fill(got, 16, 1);
        CHECK(filled(got, 16, 1));
        raise(SIGABRT);
    }
    CHECK(waitpid(child, word, 0) == child && WIFSIGNALED(*word) && WTERMSIG(*word) == SIGABRT);
    cpu_set_t *cpus = malloc(sizeof *cpus);
    CHECK(sched_getaffinity(0, sizeof *cpus, cpus) == 0 && CPU_COUNT(cpus) > 0);
    CHECK(sched_setaffinity(0, sizeof *cpus, cpus) == 0);
    struct rusage *usage = malloc(sizeof *usage);
    CHECK(getrusage(RUSAGE_SELF, usage) == 0 && usage->ru_maxrss > 0);
    say("ok");
    return 0;
}
