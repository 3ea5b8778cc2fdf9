//! flags: -pthread
// Mutexes, robust ones too, condition variables, barriers, rwlocks and semaphores on the heap: the kernel reads and
// writes these words, some of them while a thread exits.
#include "victim.h"
#include <pthread.h>
#include <semaphore.h>

enum { THREADS = 4, ROUNDS = 40 };
typedef struct {
    pthread_mutex_t mutex, robust;
    pthread_cond_t condition;
    pthread_barrier_t barrier;
    pthread_rwlock_t rwlock;
    sem_t semaphore;
    int turn, sum, holder_gone;
} Shared;
static Shared *s;

static void *work(void *argument) {
    int me = (int)(uintptr_t)argument;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&s->mutex);
        while (s->turn != me) pthread_cond_wait(&s->condition, &s->mutex);
        s->turn = (me + 1) % THREADS;
        s->sum += me;
        pthread_cond_broadcast(&s->condition);
        pthread_mutex_unlock(&s->mutex);
    }
    int result = pthread_barrier_wait(&s->barrier);
    CHECK(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
    pthread_rwlock_rdlock(&s->rwlock);
    CHECK(s->sum == ROUNDS * (0 + 1 + 2 + 3));
    pthread_rwlock_unlock(&s->rwlock);
    sem_post(&s->semaphore);
    return NULL;
}

static void *dies_holding(void *argument) {
    CHECK(pthread_mutex_lock(&s->robust) == 0);
    s->holder_gone++;
    return argument;
}

int main(void) {
    s = calloc(1, sizeof *s);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    CHECK(pthread_mutex_init(&s->mutex, NULL) == 0 && pthread_mutex_init(&s->robust, &attributes) == 0);
    CHECK(pthread_cond_init(&s->condition, NULL) == 0 && pthread_barrier_init(&s->barrier, NULL, THREADS) == 0);
    CHECK(pthread_rwlock_init(&s->rwlock, NULL) == 0 && sem_init(&s->semaphore, 0, 0) == 0);
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        while (sem_wait(&s->semaphore) != 0) CHECK(errno == EINTR);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < 5; i++) {
        CHECK(pthread_create(&threads[0], NULL, dies_holding, NULL) == 0);
        if (i % 2) CHECK(pthread_join(threads[0], NULL) == 0); // else: this thread waits in the kernel for the lock
        while (!*(volatile int *)&s->holder_gone) usleep(1000);
        CHECK(pthread_mutex_lock(&s->robust) == EOWNERDEAD);
        CHECK(pthread_mutex_consistent(&s->robust) == 0 && pthread_mutex_unlock(&s->robust) == 0);
        if (i % 2 == 0) CHECK(pthread_join(threads[0], NULL) == 0);
        s->holder_gone = 0;
    }
    struct timespec *soon = malloc(sizeof *soon);
    CHECK(clock_gettime(CLOCK_REALTIME, soon) == 0);
    soon->tv_nsec = (soon->tv_nsec + 1000000) % 1000000000;
    CHECK(sem_timedwait(&s->semaphore, soon) == -1 && errno == ETIMEDOUT);
    printf("%d\n", s->sum);
    return 0;
}
