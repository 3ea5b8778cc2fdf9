/* The runtime that victims are run against: see mock.c. */
#ifndef MOCK_H
#define MOCK_H
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct heat {
    uint64_t reads, read_bytes, writes, write_bytes;
};

/* A zeroed object of the arena, aligned to 64 bytes; not accessible but through the alias view or an open window. */
void *mock_heap(size_t size);
/* What was counted in the granules of [p, p + size). */
struct heat mock_heat(void *p, size_t size);
/* The same memory where it can be read. */
void *mock_view(void *p);
/* Whether inline code counts here (else the counts are 0): shapes alias and wrpkru, attached. */
int mock_counts(void);
/* Stands for all counts of all granules. */
uint64_t mock_digest(void);
/* Sets the counters of the calling thread's cell of p: {reads, read_extra, writes, write_extra}. */
void mock_set_cell(void *p, const uint32_t values[4]);
/* Calls of thermalloc_instrument_overflow for each counter. */
extern uint64_t mock_overflows[4];
/* WRPKRU instructions that ran. */
extern uint64_t mock_wrpkru;

/* Every failed expectation; what main returns. */
__attribute__((unused)) static int failures;

__attribute__((unused)) static void expect_heat(const char *what, void *p, size_t size, uint64_t reads, uint64_t read_bytes, uint64_t writes,
                        uint64_t write_bytes) {
    struct heat heat = mock_heat(p, size), want = {reads, read_bytes, writes, write_bytes};
    if (!mock_counts())
        want = (struct heat){0, 0, 0, 0};
    if (heat.reads == want.reads && heat.read_bytes == want.read_bytes && heat.writes == want.writes &&
        heat.write_bytes == want.write_bytes)
        return;
    fprintf(stderr, "%s: %lu reads (%lu bytes), %lu writes (%lu bytes); expected %lu (%lu), %lu (%lu)\n", what,
            heat.reads, heat.read_bytes, heat.writes, heat.write_bytes, want.reads, want.read_bytes, want.writes,
            want.write_bytes);
    failures++;
}

#define EXPECT_HEAT(p, size, reads, read_bytes, writes, write_bytes) \
    expect_heat(#p, p, size, reads, read_bytes, writes, write_bytes)

#define EXPECT(condition) \
    ((condition) ? (void)0 : (void)(failures++, fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition)))
#endif
