//! flags: -pthread
//! run: 1 => exit 0
// Threads that allocate, free, reallocate, hand over and access objects at random, and check every byte they
// wrote. soak SECONDS [THREADS]: prints `ok` on stdout; checks and growth of memory on stderr, each tenth of the time.
#include "victim.h"
#include <pthread.h>
#include <malloc.h>
#include <time.h>

enum { SLOTS = 48, SHARED = 64 };
typedef struct {
    uint32_t size, seed; // kept outside the heap's objects, so that a lost byte is noticed
    unsigned char *bytes;
} Slot;
static Slot shared[SHARED];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int stop;
static _Atomic unsigned long checks, operations;

static uint32_t next(uint32_t *state) { return *state = *state * 1664525 + 1013904223, *state >> 8; }

// Mostly small objects, some of a few pages, few large.
static uint32_t random_size(uint32_t *state) {
    uint32_t kind = next(state) % 100, any = next(state);
    return kind < 80 ? 1 + any % 512 : kind < 97 ? 1 + any % 20000 : 1 + any % 700000;
}

// Positions that are written and checked: both ends and a few between; an access costs.
static uint32_t place(const Slot *s, int i) { return i == 0 ? 0 : i == 1 ? s->size - 1 : (s->seed * 31u + i * 977u) % s->size; }
static unsigned char value(const Slot *s, uint32_t at) { return (unsigned char)(s->seed + at * 13); }

static void put(Slot *s, uint32_t seed) {
    s->seed = seed;
    for (int i = 0; i < 6; i++) s->bytes[place(s, i)] = value(s, place(s, i));
}
static void check(const Slot *s) {
    for (int i = 0; i < 6; i++) CHECK(s->bytes[place(s, i)] == value(s, place(s, i)));
    checks++;
}
static void make(Slot *s, uint32_t *state) {
    s->size = random_size(state);
    s->bytes = next(state) % 8 ? malloc(s->size) : memalign(64 << next(state) % 8, s->size);
    CHECK(s->bytes);
    put(s, next(state));
}

static void *work(void *seed) {
    uint32_t state = (uint32_t)(uintptr_t)seed * 7919 + 1;
    Slot own[SLOTS] = {0};
    while (!stop) {
        Slot *s = &own[next(&state) % SLOTS];
        operations++;
        if (!s->bytes) {
            make(s, &state);
            continue;
        }
        check(s);
        switch (next(&state) % 5) {
        case 0: free(s->bytes), s->bytes = NULL; break;
        case 1: put(s, next(&state)); break;
        case 2: { // grows or shrinks: what fits of the first byte stays
            unsigned char first = s->bytes[0];
            s->size = random_size(&state);
            s->bytes = realloc(s->bytes, s->size);
            CHECK(s->bytes && s->bytes[0] == first);
            put(s, next(&state));
            break;
        }
        default: { // changes hands: another thread will check and free it
            Slot mine = *s;
            Slot *other = &shared[next(&state) % SHARED];
            pthread_mutex_lock(&lock);
            *s = *other, *other = mine;
            pthread_mutex_unlock(&lock);
        }
        }
    }
    for (int i = 0; i < SLOTS; i++)
        if (own[i].bytes) check(&own[i]), free(own[i].bytes);
    return NULL;
}

static long resident_kib(void) {
    char line[200];
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fgets(line, sizeof line, file)) sscanf(line, "%*d %ld", &pages);
    if (file) fclose(file);
    return pages * 4;
}

int main(int count, char **arguments) {
    double seconds = count > 1 ? atof(arguments[1]) : 10;
    int threads = count > 2 ? atoi(arguments[2]) : 8;
    CHECK(threads >= 1 && threads <= 64);
    pthread_t started[64];
    for (intptr_t i = 0; i < threads; i++) CHECK(pthread_create(&started[i], NULL, work, (void *)i) == 0);
    long first = 0;
    for (int tenth = 1; tenth <= 10; tenth++) {
        struct timespec pause = {(time_t)(seconds / 10), (long)((seconds / 10 - (time_t)(seconds / 10)) * 1e9)};
        nanosleep(&pause, NULL);
        long now = resident_kib();
        if (tenth == 2) first = now; // the live set is complete by then
        fprintf(stderr, "%d0 %%: %lu operations, %lu checks, %ld KiB resident, %+ld KiB since 20 %%\n", tenth,
                (unsigned long)operations, (unsigned long)checks, now, tenth < 2 ? 0 : now - first);
    }
    stop = 1;
    for (int i = 0; i < threads; i++) CHECK(pthread_join(started[i], NULL) == 0);
    for (int i = 0; i < SHARED; i++)
        if (shared[i].bytes) check(&shared[i]), free(shared[i].bytes);
    CHECK(checks > 0);
    say("ok");
    return 0;
}
