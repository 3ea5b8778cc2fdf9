//! flags: -pthread
//! helper
// Threads that hammer words of one heap page, each a known number of times: shows which mode loses accesses.
// Prints one JSON line: the object, and the reads and writes that happened.
#include "victim.h"
#include <pthread.h>

enum { STRIDE = 64 }; // words of different threads lie in different cache lines
static char *page;
static unsigned long rounds;

static void *hammer(void *index) {
    char *word = page + STRIDE * (uintptr_t)index;
    for (unsigned long i = 0; i < rounds; i++) __asm__ volatile("lock incq (%0)" ::"r"(word) : "memory", "cc");
    return NULL;
}

int main(int count, char **arguments) {
    uintptr_t threads = count > 1 ? atoi(arguments[1]) : 2;
    rounds = count > 2 ? strtoul(arguments[2], NULL, 10) : 5000;
    CHECK(threads >= 1 && threads <= 16);
    page = aligned_alloc(4096, 4096);
    pthread_t *started = alloca(threads * sizeof *started);
    for (uintptr_t i = 0; i < threads; i++) CHECK(pthread_create(&started[i], NULL, hammer, (void *)i) == 0);
    for (uintptr_t i = 0; i < threads; i++) CHECK(pthread_join(started[i], NULL) == 0);
    unsigned long all = threads * rounds;
    printf("{\"label\":\"hole\",\"address\":%lu,\"size\":4096,\"threads\":%lu,\"reads\":%lu,\"writes\":%lu,"
           "\"read_bytes\":%lu,\"write_bytes\":%lu}\n", (unsigned long)page, (unsigned long)threads, all, all, all * 8, all * 8);
    return 0;
}
