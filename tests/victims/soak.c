//! flags: -pthread
//! run: 1 => exit 0
// Threads that allocate, free, reallocate, hand over and access objects at random, and check what they wrote. First
// they fill what they will ever hold, and enough objects die to fill the monitor's store of dead ones; from then on memory
// must not grow. soak SECONDS [THREADS]: prints `ok` on stdout, work done and memory on stderr, each tenth of the time.
#include "victim.h"
#include <pthread.h>
#include <malloc.h>
#include <stdatomic.h>
#include <time.h>

// DEATHS, of all threads together: the monitor keeps 20,000 dead objects or 64 MiB of their heat.
enum { SLOTS = 48, SHARED = 64, DEATHS = 40000 };
typedef struct {
    uint32_t size, seed; // kept outside the heap's objects, so that a lost byte is noticed
    unsigned char *bytes;
} Slot;
static Slot shared[SHARED];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int stop;
static int threads = 8;
static _Atomic unsigned long checks, operations, warm;

static uint32_t next(uint32_t *state) { return *state = *state * 1664525 + 1013904223, *state >> 8; }

// Mostly small objects, some of a few pages, few large.
static uint32_t random_size(uint32_t *state) {
    uint32_t kind = next(state) % 100, any = next(state);
    return kind < 80 ? 1 + any % 512 : kind < 97 ? 1 + any % 20000 : 1 + any % 700000;
}

// Positions that are written and checked: both ends and a few between; an access costs.
static uint32_t place(const Slot *s, int i) { return i == 0 ? 0 : i == 1 ? s->size - 1 : (s->seed * 31u + i * 977u) % s->size; }
static unsigned char value(const Slot *s, uint32_t at) { return (unsigned char)(s->seed + at * 13); }

// Touches every page by a single access.
static void touch(void *at, size_t count) {
    __asm__ volatile("rep stosb" : "+D"(at), "+c"(count) : "a"(0x5a) : "memory");
}

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
    touch(s->bytes, s->size);
    put(s, next(state));
}

// Every slot filled, each again and again.
static void warm_up(Slot *own, uint32_t *state) {
    for (int i = 0; i < DEATHS / threads; i++) {
        Slot *s = &own[i % SLOTS];
        free(s->bytes);
        s->size = random_size(state);
        s->bytes = malloc(s->size);
        CHECK(s->bytes);
        touch(s->bytes, s->size);
    }
    for (int i = 0; i < SLOTS; i++) put(&own[i], next(state));
    warm++;
}

static void *work(void *seed) {
    uint32_t state = (uint32_t)(uintptr_t)seed * 7919 + 1;
    Slot own[SLOTS] = {0};
    warm_up(own, &state);
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
            touch(s->bytes, s->size);
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

// Proportional set size: what is mapped twice counts once.
static long memory_kib(void) {
    char line[200];
    long kib = 0;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    CHECK(file);
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "Pss: %ld", &kib) == 1) break;
    fclose(file);
    CHECK(kib > 0);
    return kib;
}

static void pause_for(double seconds) {
    struct timespec pause = {(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)};
    nanosleep(&pause, NULL);
}

int main(int count, char **arguments) {
    double seconds = count > 1 ? atof(arguments[1]) : 10;
    if (count > 2) threads = atoi(arguments[2]);
    CHECK(threads >= 1 && threads <= 64);
    pthread_t started[64];
    for (intptr_t i = 0; i < threads; i++) CHECK(pthread_create(&started[i], NULL, work, (void *)i) == 0);
    while (warm < (unsigned long)threads) pause_for(0.05);
    for (int tenth = 0; tenth <= 10; tenth++) {
        if (tenth > 0) pause_for(seconds / 10);
        fprintf(stderr, "%d %% of the time: %lu operations, %lu checks, memory %ld KiB\n", 10 * tenth,
                (unsigned long)operations, (unsigned long)checks, memory_kib());
    }
    stop = 1;
    for (int i = 0; i < threads; i++) CHECK(pthread_join(started[i], NULL) == 0);
    for (int i = 0; i < SHARED; i++)
        if (shared[i].bytes) check(&shared[i]), free(shared[i].bytes);
    CHECK(checks > 0);
    say("ok");
    return 0;
}
