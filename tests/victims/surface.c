//! flags: -Wno-all
// The C surface of the allocator: each function's results, limits and errno.
#include "victim.h"
#include <dlfcn.h>
#include <limits.h>
#include <malloc.h>

static int aligned(void *pointer, size_t to) { return pointer && (uintptr_t)pointer % to == 0; }
// Writes both ends, so that an object shorter than promised would overlap its neighbour.
static void *used(void *pointer, size_t size) {
    char *bytes = OPAQUE((char *)pointer);
    CHECK(bytes && malloc_usable_size(bytes) >= size);
    if (size) bytes[0] = 1, bytes[size - 1] = 1;
    return pointer;
}
static int no_memory(void *pointer) {
    int right = pointer == NULL && errno == ENOMEM;
    errno = 0;
    return right;
}

int main(void) {
    volatile size_t huge = SIZE_MAX, most = PTRDIFF_MAX;
    errno = 0;
    for (size_t size = 0; size < 5000; size += size / 3 + 1) {
        char *block = used(malloc(size), size);
        CHECK(aligned(block, 16));
        free(block);
    }
    char *zero = malloc(0), *other = malloc(0);
    CHECK(zero && other && zero != other);
    free(zero), free(other), free(NULL);
    CHECK(no_memory(malloc(huge)) && no_memory(malloc(huge - 100)) && no_memory(malloc(most + 1)));

    char *dirty = malloc(3000);
    memset(dirty, 7, 3000), free(dirty);
    char *clean = used(calloc(30, 100), 3000);
    clean[0] = clean[2999] = 0;
    for (int i = 0; i < 3000; i += 8) CHECK(*(uint64_t *)(clean + i) == 0);
    CHECK(no_memory(calloc(huge / 2, 3)) && no_memory(calloc(huge, huge)) && no_memory(calloc(1, huge)));
    CHECK(calloc(0, 5) != NULL && calloc(5, 0) != NULL);

    fill(clean, 3000, 1);
    clean = realloc(clean, 100000);
    CHECK(filled(clean, 3000, 1));
    clean = realloc(clean, 3 << 20);
    CHECK(filled(clean, 3000, 1));
    CHECK(no_memory(realloc(clean, huge)) && no_memory(reallocarray(clean, huge / 2, 3)) && filled(clean, 100, 1));
    clean = reallocarray(clean, 10, 20);
    CHECK(filled(clean, 200, 1));
    clean = realloc(clean, 10);
    CHECK(filled(clean, 10, 1));
    CHECK(realloc(clean, 0) == NULL);
    CHECK(used(realloc(NULL, 50), 50) && used(reallocarray(NULL, 5, 10), 50));

    void *pointer = (void *)5;
    for (size_t to = sizeof(void *); to <= 64 << 20; to *= 4) {
        CHECK(posix_memalign(&pointer, to, 100) == 0 && aligned(used(pointer, 100), to));
        free(pointer);
        pointer = aligned_alloc(to, to);
        CHECK(aligned(pointer, to)), ((char *)pointer)[to - 1] = 1, free(pointer);
        pointer = memalign(to, 24);
        CHECK(aligned(used(pointer, 24), to)), free(pointer);
    }
    pointer = (void *)5;
    errno = 0;
    CHECK(posix_memalign(&pointer, 3, 10) == EINVAL && posix_memalign(&pointer, 4, 10) == EINVAL);
    CHECK(posix_memalign(&pointer, 24, 10) == EINVAL && posix_memalign(&pointer, 0, 10) == EINVAL);
    CHECK(posix_memalign(&pointer, 16, huge) == ENOMEM && pointer == (void *)5);
    errno = 0;
    CHECK(no_memory(memalign(64, huge)) && no_memory(aligned_alloc(64, huge - 63)) && no_memory(valloc(huge)));
    CHECK(posix_memalign(&pointer, 16, 0) == 0), free(pointer);
    CHECK(aligned(used(valloc(10), 10), 4096) && aligned(used(pvalloc(10), 4096), 4096) && no_memory(pvalloc(huge)));

    // memory from memalign goes on by realloc and is freed like any
    pointer = memalign(4096, 100);
    fill(pointer, 100, 5);
    pointer = realloc(pointer, 50000);
    CHECK(filled(pointer, 100, 5));
    free(pointer);
    CHECK(malloc_usable_size(NULL) == 0);
    int trimmed = malloc_trim(0);
    CHECK(trimmed == 0 || trimmed == 1);
    struct mallinfo2 info = mallinfo2();
    char *kept = used(malloc(1 << 20), 1 << 20);
    struct mallinfo2 more = mallinfo2();
    CHECK(more.uordblks + more.hblkhd >= info.uordblks + info.hblkhd + (1 << 20));
    free(kept);

    // Newer or older than this C library: only where the allocator has them.
    void (*sized)(void *, size_t) = dlsym(RTLD_DEFAULT, "free_sized");
    void (*aligned_sized)(void *, size_t, size_t) = dlsym(RTLD_DEFAULT, "free_aligned_sized");
    void (*old)(void *) = dlsym(RTLD_DEFAULT, "cfree");
    if (sized) sized(malloc(100), 100), sized(NULL, 0);
    if (aligned_sized) aligned_sized(aligned_alloc(256, 512), 256, 512);
    if (old) old(malloc(100));
    fprintf(stderr, "free_sized %d free_aligned_sized %d cfree %d\n", sized != 0, aligned_sized != 0, old != 0);

    char *name = NULL;
    CHECK(asprintf(&name, "%s-%d", "name", 5) == 6 && strcmp(name, "name-5") == 0);
    free(name);
    char *path = realpath("/usr/../", NULL);
    CHECK(strcmp(path, "/") == 0);
    free(path);
    say("ok");
    return 0;
}
