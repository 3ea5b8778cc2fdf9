//! settings: --interval 20
//! run: fork => exit 0
//! run: die => signal 14
// Reports that come by the clock: in the middle of forks by the bare system call, and up to a deadly signal.
#include "victim.h"
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

static void spin(long milliseconds) {
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < milliseconds);
}

int main(int count, char **arguments) {
    char *block = OPAQUE((char *)malloc(100));
    block[0] = 1;
    CHECK(count == 2);
    say(arguments[1]);
    if (strcmp(arguments[1], "die") == 0) {
        struct itimerval once = {.it_value = {.tv_usec = 100000}};
        CHECK(setitimer(ITIMER_REAL, &once, NULL) == 0);
        for (;;) {}
    }
    for (int i = 0; i < 6; i++) {
        spin(30); // so that a report is due at the next system call
        pid_t child = syscall(SYS_fork);
        if (child == 0) _exit(block[0] == 1 ? 3 : 4);
        int status;
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3);
    }
    return 0;
}
