/* Calls what thermalloc.h offers; with -DLIBRARY, a runtime that notes the calls. */
#ifdef LIBRARY
#include <stddef.h>
static size_t got[4];
void thermalloc_pool(void *base, size_t length, size_t chunk_size, const char *label) {
    got[0] = length - chunk_size + (base == label);
}
void thermalloc_object(void *p, size_t size, const char *label) {
    got[1] = size + (p == label);
}
void thermalloc_free(void *p) {
    got[2] += p != 0;
}
void thermalloc_start(void) {
    got[3]++;
}
size_t noted(int which) {
    return got[which];
}
#else
#include "thermalloc.h"
#include <stdio.h>

int main(void) {
    static char pool[64];
    thermalloc_pool(pool, sizeof pool, 16, "pool");
    thermalloc_object(pool + 16, 8, "object");
    thermalloc_free(pool + 16);
    thermalloc_start();
    /* Not in the runtime of this test: nothing happens. */
    thermalloc_stop();
    thermalloc_snapshot("nowhere");
    size_t (*ask)(int);
    THERMALLOC_FIND_(ask, "noted");
    size_t got[4] = {0, 0, 0, 0};
    for (int i = 0; ask && i < 4; i++)
        got[i] = ask(i);
    printf("pool %zu object %zu free %zu start %zu\n", got[0], got[1], got[2], got[3]);
    return 0;
}
#endif
