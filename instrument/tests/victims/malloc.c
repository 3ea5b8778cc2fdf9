/* malloc from the mock's arena, for programs that know nothing of it: size classes with free lists. */
#define _GNU_SOURCE
#include "mock.h"
#include <errno.h>
#include <pthread.h>
#include <string.h>

#define CLASSES 40

struct header {
    size_t size;
    void *padding;
};

static void *lists[CLASSES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int class_of(size_t size) {
    int class = 5;
    while (((size_t)1 << class) < size)
        class ++;
    return class;
}

void *malloc(size_t size) {
    int class = class_of(size + sizeof(struct header));
    pthread_mutex_lock(&lock);
    void **first = lists[class];
    if (first)
        lists[class] = *first;
    pthread_mutex_unlock(&lock);
    struct header *header = first ? (struct header *)first : mock_heap((size_t)1 << class);
    header->size = size;
    return header + 1;
}

void free(void *p) {
    if (!p)
        return;
    struct header *header = (struct header *)p - 1;
    int class = class_of(header->size + sizeof *header);
    pthread_mutex_lock(&lock);
    *(void **)header = lists[class];
    lists[class] = header;
    pthread_mutex_unlock(&lock);
}

void *calloc(size_t count, size_t size) {
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) {
        errno = ENOMEM;
        return NULL;
    }
    void *p = malloc(total);
    return memset(p, 0, total);
}

void *realloc(void *p, size_t size) {
    if (!p)
        return malloc(size);
    size_t old = ((struct header *)p - 1)->size;
    void *fresh = malloc(size);
    memcpy(fresh, p, old < size ? old : size);
    free(p);
    return fresh;
}

int posix_memalign(void **result, size_t alignment, size_t size) {
    char *p = mock_heap(size + 2 * alignment + sizeof(struct header));
    p = (char *)(((size_t)p + sizeof(struct header) + alignment - 1) / alignment * alignment);
    ((struct header *)p)[-1].size = 0;
    *result = p;
    return 0;
}

size_t malloc_usable_size(void *p) {
    return p ? ((struct header *)p - 1)->size : 0;
}
