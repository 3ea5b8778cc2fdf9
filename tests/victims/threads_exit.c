//! flags: -pthread
// Threads that come and go by every way, and free what other threads allocated, also while they exit.
#include "victim.h"
#include <pthread.h>
#include <semaphore.h>

static pthread_key_t key;
static _Atomic int destroyed, cleaned;
static sem_t *done;

static void destroy(void *value) {
    CHECK(((char *)value)[0] == 42);
    free(value);
    free(malloc(10)); // allocates in the last moments of the thread
    destroyed++;
}
static void clean(void *value) { free(value), cleaned++; }

static void *brief(void *given) {
    char *own = malloc(50);
    own[0] = 42;
    CHECK(pthread_setspecific(key, own) == 0);
    char *result = malloc(64);
    result[0] = ((char *)given)[0];
    free(given);
    return result;
}
static void *detached(void *given) {
    int odd = *(int *)given & 1;
    free(given);
    sem_post(done);
    if (odd) pthread_exit(NULL);
    return NULL;
}
static void *cancelled(void *started) {
    pthread_cleanup_push(clean, malloc(33));
    sem_post(started);
    for (;;) usleep(1000);
    pthread_cleanup_pop(0);
    return NULL;
}

int main(void) {
    pthread_t threads[8];
    done = malloc(sizeof *done);
    CHECK(sem_init(done, 0, 0) == 0);
    CHECK(pthread_key_create(&key, destroy) == 0);
    for (int round = 0; round < 60; round++) {
        for (int i = 0; i < 8; i++) {
            char *given = malloc(20 + i);
            given[0] = (char)i;
            CHECK(pthread_create(&threads[i], NULL, brief, given) == 0);
        }
        for (int i = 0; i < 8; i++) {
            char *result;
            CHECK(pthread_join(threads[i], (void **)&result) == 0 && result[0] == i);
            free(result);
        }
    }
    CHECK(destroyed == 480);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    for (int i = 0; i < 60; i++) {
        int *given = malloc(100);
        *given = i;
        CHECK(pthread_create(&threads[0], &attributes, detached, given) == 0);
        while (sem_wait(done) == -1) CHECK(errno == EINTR);
    }
    for (int i = 0; i < 20; i++) {
        CHECK(pthread_create(&threads[0], NULL, cancelled, done) == 0);
        while (sem_wait(done) == -1) CHECK(errno == EINTR);
        void *result;
        CHECK(pthread_cancel(threads[0]) == 0);
        CHECK(pthread_join(threads[0], &result) == 0 && result == PTHREAD_CANCELED);
    }
    CHECK(cleaned == 20);
    say("ok");
    return 0;
}
