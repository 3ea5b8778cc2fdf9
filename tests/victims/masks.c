//! flags: -pthread
// Signal actions and masks read back as they were set, also for the signals that the monitor needs for itself.
#include "victim.h"
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <time.h>

enum { SA_RESTORER = 0x04000000 }; // glibc sets it and shows it
static const int own[] = {SIGSEGV, SIGTRAP, SIGSYS, SIGBUS, SIGILL, SIGFPE};
static volatile int hits;

static void on_signal(int signal) { hits += signal > 0; }
static void on_info(int signal, siginfo_t *info, void *context) {
    (void)context;
    CHECK(info->si_signo == signal && info->si_pid == getpid());
    hits += 100;
}

static void actions(int number) {
    struct sigaction *set = calloc(1, sizeof *set), *got = calloc(1, sizeof *got);
    CHECK(signal(number, SIG_IGN) == SIG_DFL);
    CHECK(signal(number, on_signal) == SIG_IGN);
    CHECK(sigaction(number, NULL, got) == 0 && got->sa_handler == on_signal && (got->sa_flags & SA_RESTART));
    set->sa_sigaction = on_info;
    set->sa_flags = SA_SIGINFO | SA_NODEFER;
    sigemptyset(&set->sa_mask);
    sigaddset(&set->sa_mask, SIGUSR2);
    sigaddset(&set->sa_mask, SIGSEGV);
    CHECK(sigaction(number, set, got) == 0 && got->sa_handler == on_signal);
    CHECK(sigaction(number, NULL, got) == 0 && got->sa_sigaction == on_info);
    CHECK((got->sa_flags & ~SA_RESTORER) == (SA_SIGINFO | SA_NODEFER));
    CHECK(sigismember(&got->sa_mask, SIGUSR2) == 1 && sigismember(&got->sa_mask, SIGSEGV) == 1);
    CHECK(sigismember(&got->sa_mask, SIGTRAP) == 0);
    hits = 0;
    CHECK(raise(number) == 0 && hits == 100);
    set->sa_handler = on_signal;
    set->sa_flags = SA_RESETHAND;
    CHECK(sigaction(number, set, NULL) == 0 && raise(number) == 0 && hits == 101);
    CHECK(sigaction(number, NULL, got) == 0 && got->sa_handler == SIG_DFL);
    free(set), free(got);
}

static void blocking(int number) {
    sigset_t *set = malloc(sizeof *set), *old = malloc(sizeof *old);
    hits = 0;
    signal(number, on_signal);
    sigemptyset(set), sigaddset(set, number);
    CHECK(pthread_sigmask(SIG_BLOCK, set, old) == 0 && !sigismember(old, number));
    CHECK(sigprocmask(SIG_SETMASK, NULL, old) == 0 && sigismember(old, number));
    CHECK(raise(number) == 0 && hits == 0);
    CHECK(sigpending(old) == 0 && sigismember(old, number));
    // The heap works while its own signals are blocked.
    char *block = malloc(300);
    fill(block, 300, number);
    CHECK(filled(block, 300, number));
    free(block);
    CHECK(sigprocmask(SIG_UNBLOCK, set, old) == 0 && sigismember(old, number) && hits == 1);
    CHECK(sigprocmask(SIG_BLOCK, NULL, old) == 0 && !sigismember(old, number));
    signal(number, SIG_DFL);
    free(set), free(old);
}

static void waiting(void) {
    sigset_t *set = malloc(sizeof *set);
    siginfo_t *info = malloc(sizeof *info);
    sigemptyset(set), sigaddset(set, SIGUSR1), sigaddset(set, SIGSYS);
    CHECK(sigprocmask(SIG_BLOCK, set, NULL) == 0);
    CHECK(sigqueue(getpid(), SIGUSR1, (union sigval){.sival_int = 7}) == 0);
    CHECK(sigwaitinfo(set, info) == SIGUSR1 && info->si_value.sival_int == 7 && info->si_code == SI_QUEUE);
    struct timespec *soon = malloc(sizeof *soon);
    *soon = (struct timespec){0, 1000000};
    CHECK(sigtimedwait(set, info, soon) == -1 && errno == EAGAIN);
    int got = 0;
    CHECK(raise(SIGUSR1) == 0 && sigwait(set, &got) == 0 && got == SIGUSR1);
    int fd = signalfd(-1, set, SFD_CLOEXEC);
    CHECK(fd >= 0 && raise(SIGUSR1) == 0);
    struct signalfd_siginfo *record = malloc(sizeof *record);
    CHECK(read(fd, record, sizeof *record) == sizeof *record && record->ssi_signo == SIGUSR1);
    close(fd);
    hits = 0;
    signal(SIGUSR1, on_signal);
    CHECK(raise(SIGUSR1) == 0 && hits == 0);
    sigset_t *empty = malloc(sizeof *empty);
    sigemptyset(empty);
    CHECK(sigsuspend(empty) == -1 && errno == EINTR && hits == 1);
    CHECK(raise(SIGUSR1) == 0 && hits == 1);
    CHECK(ppoll(NULL, 0, NULL, empty) == -1 && errno == EINTR && hits == 2);
    CHECK(raise(SIGUSR1) == 0 && hits == 2);
    CHECK(pselect(0, NULL, NULL, NULL, NULL, empty) == -1 && errno == EINTR && hits == 3);
    CHECK(sigprocmask(SIG_BLOCK, NULL, set) == 0 && sigismember(set, SIGUSR1) && sigismember(set, SIGSYS));
    CHECK(sigprocmask(SIG_SETMASK, empty, NULL) == 0);
    free(set), free(info), free(soon), free(record), free(empty);
}

static void *thread_mask(void *set) {
    sigset_t mine;
    CHECK(pthread_sigmask(SIG_BLOCK, NULL, &mine) == 0);
    CHECK(sigismember(&mine, SIGSEGV) && sigismember(&mine, SIGUSR2) && !sigismember(&mine, SIGUSR1));
    sigfillset(set);
    CHECK(pthread_sigmask(SIG_BLOCK, set, NULL) == 0);
    char *block = malloc(500);
    fill(block, 500, 9);
    CHECK(filled(block, 500, 9));
    free(block);
    return NULL;
}

int main(void) {
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) actions(own[i]), blocking(own[i]);
    actions(SIGUSR1), blocking(SIGRTMIN + 3);
    waiting();
    sigset_t set, *buffer = malloc(sizeof *buffer);
    sigemptyset(&set), sigaddset(&set, SIGSEGV), sigaddset(&set, SIGUSR2);
    CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, thread_mask, buffer) == 0 && pthread_join(thread, NULL) == 0);
    free(buffer);
    struct sigaction bad = {.sa_handler = on_signal};
    CHECK(sigaction(SIGKILL, &bad, NULL) == -1 && errno == EINVAL);
    CHECK(sigaction(99, &bad, NULL) == -1 && errno == EINVAL);
    CHECK(sigprocmask(77, &set, NULL) == -1 && errno == EINVAL);
    say("ok");
    return 0;
}
