//! flags: -pthread
// Signals while a thread ends, whose handler allocates: they interrupt no malloc of the program's, so they must not
// find the allocator in the middle of something either.
#include "victim.h"
#include <pthread.h>
#include <signal.h>
#include <time.h>

enum { BLOCKS = 64, SIZE = 16000, THREADS = 120, STEP_NS = 250 };
static pthread_key_t last;
static sigset_t alarms;
static volatile int handled;

static void on_alarm(int signal) {
    for (int i = 0; i < 8; i++) free(OPAQUE(malloc(SIZE)));
    handled++;
}

// The last destructor of the thread, for its key is the youngest: libc takes the thread's memory apart after it.
static void end_of_signals(void *value) { pthread_sigmask(SIG_BLOCK, &alarms, NULL); }

// Ends with a signal to come, for each thread a moment later than for the one before.
static void *work(void *number) {
    void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) CHECK((blocks[i] = malloc(SIZE)) != NULL);
    for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
    CHECK(pthread_setspecific(last, &last) == 0);
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
    event._sigev_un._tid = gettid();
    struct itimerspec once = {.it_value.tv_nsec = 1 + (uintptr_t)number * STEP_NS};
    timer_t timer;
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &once, NULL) == 0);
    return timer;
}

int main(void) {
    sigemptyset(&alarms), sigaddset(&alarms, SIGALRM);
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0 && pthread_key_create(&last, end_of_signals) == 0);
    for (uintptr_t i = 0; i < THREADS; i++) {
        pthread_t thread;
        void *timer;
        CHECK(pthread_create(&thread, NULL, work, (void *)i) == 0 && pthread_join(thread, &timer) == 0);
        CHECK(timer_delete(timer) == 0);
    }
    CHECK(handled > 0);
    say("ok");
    return 0;
}
