// System calls that a signal interrupts fail or restart as the action says, and report the time that is left.
#include "victim.h"
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

static volatile int hits;
static int pipes[2];

static void on_alarm(int signal) {
    hits += signal == SIGALRM;
    if (hits == 2) CHECK(write(pipes[1], "late", 4) == 4); // ends the restarted read
}

// Late enough for a slow machine to be inside the call that it interrupts; one that comes before leaves it waiting for ever.
static void in_200_ms(void) {
    struct itimerval timer = {{0, 0}, {0, 200000}};
    CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

int main(void) {
    char *buffer = malloc(64);
    CHECK(pipe(pipes) == 0);
    struct sigaction action = {.sa_handler = on_alarm};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    in_200_ms();
    CHECK(read(pipes[0], buffer, 64) == -1 && errno == EINTR && hits == 1);
    action.sa_flags = SA_RESTART;
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    in_200_ms();
    CHECK(read(pipes[0], buffer, 64) == 4 && memcmp(buffer, "late", 4) == 0 && hits == 2);
    struct timespec *wish = malloc(sizeof *wish), *left = calloc(1, sizeof *left);
    *wish = (struct timespec){30, 0};
    in_200_ms();
    CHECK(nanosleep(wish, left) == -1 && errno == EINTR && hits == 3);
    CHECK(left->tv_sec < 30 && left->tv_sec > 10 && wish->tv_sec == 30);
    *left = (struct timespec){0, 0};
    in_200_ms();
    CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, wish, left) == EINTR && hits == 4 && left->tv_sec > 10);
    // A stopped and continued sleeper goes on (restart_syscall).
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        *wish = (struct timespec){0, 300000000};
        _exit(nanosleep(wish, NULL) == 0 ? 5 : 6);
    }
    usleep(50000);
    int *status = malloc(sizeof *status);
    CHECK(kill(child, SIGSTOP) == 0 && waitpid(child, status, WUNTRACED) == child && WIFSTOPPED(*status));
    CHECK(kill(child, SIGCONT) == 0);
    CHECK(waitpid(child, status, 0) == child && WIFEXITED(*status) && WEXITSTATUS(*status) == 5);
    say("ok");
    return 0;
}
