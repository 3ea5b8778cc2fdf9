/* What instrumented code costs where nothing but the processor counts: four loops, each with its CPU time in seconds. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct node {
    struct node *next;
    long key, value;
};

#define NODES 20000
#define BUCKETS 4096

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

__attribute__((noinline)) static long list(struct node *node) {
    long sum = 0;
    for (; node; node = node->next)
        sum += node->value;
    return sum;
}

__attribute__((noinline)) static long hash(struct node **table, long rounds) {
    long sum = 0;
    unsigned long random = 1;
    for (long i = 0; i < rounds; i++) {
        random = random * 6364136223846793005ul + 1442695040888963407ul;
        long key = (random >> 33) % NODES;
        struct node *node = table[key % BUCKETS];
        while (node && node->key != key)
            node = node->next;
        if (node)
            sum += node->value++;
    }
    return sum;
}

__attribute__((noinline)) static long array(long *a, long n) {
    for (long i = 1; i < n; i++)
        a[i] += a[i - 1] * 3;
    return a[n - 1];
}

__attribute__((noinline)) static long bytes(const unsigned char *a, long n) {
    long sum = 0;
    for (long i = 0; i < n; i++)
        sum = sum * 31 + a[i];
    return sum;
}

#define LOOP(name, times, call)                                \
    do {                                                       \
        double before = now();                                 \
        for (int i = 0; i < (times); i++) {                    \
            sum += (call);                                     \
            __asm__ volatile("" ::: "memory");                 \
        }                                                      \
        printf("%s %.4f\n", name, now() - before);             \
    } while (0)

int main(void) {
    struct node *first = NULL, **table = calloc(BUCKETS, sizeof *table);
    long *longs = calloc(NODES, sizeof *longs), sum = 0;
    unsigned char *chars = calloc(NODES * 4, 1);
    for (long i = 0; i < NODES; i++) {
        struct node *node = malloc(sizeof *node), *other = malloc(sizeof *other);
        *node = (struct node){table[i % BUCKETS], i, i};
        table[i % BUCKETS] = node;
        *other = (struct node){first, i, i};
        if (i < 2000)
            first = other;
    }
    LOOP("list", 30000, list(first + (i & 0)));
    LOOP("hash", 1, hash(table, 5000000));
    LOOP("array", 3000, array(longs, NODES));
    LOOP("bytes", 1000, bytes(chars + (i & 1), NODES * 4 - 1));
    return sum == 42;
}
