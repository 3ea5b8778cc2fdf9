/* Threads that count in the same cells: nothing is lost. */
#include "mock.h"
#include <pthread.h>

#define THREADS 8
#define ROUNDS 20000

static void *work(void *object) {
    volatile int *p = object;
    for (int i = 0; i < ROUNDS; i++)
        p[i & 3] = p[(i + 1) & 3];
    return NULL;
}

int main(void) {
    int *p = mock_heap(16);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        EXPECT(pthread_create(&threads[i], NULL, work, p) == 0);
    for (int i = 0; i < THREADS; i++)
        EXPECT(pthread_join(threads[i], NULL) == 0);
    EXPECT_HEAT(p, 16, THREADS * ROUNDS, 4 * THREADS * ROUNDS, THREADS * ROUNDS, 4 * THREADS * ROUNDS);
    return failures != 0;
}
