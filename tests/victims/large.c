// Huge and oddly aligned objects, of which little is touched.
#include "victim.h"

int main(void) {
    for (size_t size = 1 << 20; size <= (size_t)1 << 30; size <<= 2) {
        char *block = malloc(size + 12345);
        CHECK(block != NULL);
        fill(block, 50, 1), fill(block + size + 12345 - 50, 50, 2);
        char *grown = realloc(block, size * 2);
        CHECK(grown && filled(grown, 50, 1) && filled(grown + size + 12345 - 50, 50, 2));
        grown = realloc(grown, size / 2);
        CHECK(grown && filled(grown, 50, 1));
        free(grown);
    }
    for (size_t to = 1 << 12; to <= (size_t)1 << 30; to <<= 3) {
        void *pointer;
        CHECK(posix_memalign(&pointer, to, 5000) == 0 && (uintptr_t)pointer % to == 0);
        fill(pointer, 20, 3);
        CHECK(filled(pointer, 20, 3));
        free(pointer);
    }
    char *clean = calloc(1, 64 << 20);
    for (size_t i = 0; i < 64 << 20; i += 1 << 20) CHECK(clean[i] == 0 && clean[i + 4095] == 0);
    free(clean);
    // Many large ones, one after another: the address space is reused.
    for (int i = 0; i < 300; i++) {
        char *block = malloc((size_t)1 << 30);
        CHECK(block != NULL);
        block[i * 4096] = 1;
        free(block);
    }
    say("ok");
    return 0;
}
