//! flags: -pthread
// fork from one thread while others allocate: the child's heap is whole and its locks are free.
#include "victim.h"
#include <pthread.h>
#include <sys/wait.h>

static volatile int stop;

static void *churn(void *seed) {
    unsigned state = (unsigned)(uintptr_t)seed;
    char *blocks[16] = {0};
    while (!stop) {
        state = state * 1664525 + 1013904223;
        unsigned slot = state >> 28, size = 1 + (state >> 8) % 4000;
        free(blocks[slot]);
        blocks[slot] = malloc(size);
        blocks[slot][0] = 1;
    }
    for (int i = 0; i < 16; i++) free(blocks[i]);
    return NULL;
}

static void *grandchild_thread(void *argument) {
    char *block = malloc(100);
    fill(block, 100, 3);
    CHECK(filled(block, 100, 3));
    free(block);
    return argument;
}

int main(void) {
    pthread_t threads[3];
    for (uintptr_t i = 0; i < 3; i++) CHECK(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)) == 0);
    for (int i = 0; i < 12; i++) {
        char *before = malloc(64);
        fill(before, 64, i);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            CHECK(filled(before, 64, i));
            for (int k = 0; k < 40; k++) {
                char *block = malloc(1 + k * 97 % 3000);
                block[0] = 1;
                free(block);
            }
            pthread_t thread;
            CHECK(pthread_create(&thread, NULL, grandchild_thread, NULL) == 0);
            CHECK(pthread_join(thread, NULL) == 0);
            exit(i);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == i && filled(before, 64, i));
        free(before);
    }
    stop = 1;
    for (int i = 0; i < 3; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    say("ok");
    return 0;
}
