//! flags: -pthread
//! run: exit => exit 3
//! run: callback => exit 0
// The loader's lock: threads that hold it at exit, and a callback that allocates under it while others allocate.
#include "victim.h"
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

static _Atomic int inside;

static int nothing(struct dl_phdr_info *info, size_t size, void *data) { return 0; }

static void *iterate(void *null) {
    for (;;) dl_iterate_phdr(nothing, null);
    return null;
}

// First allocates, from a place that was not seen before, when the other thread is in the callback.
static void *allocate(void *null) {
    while (!inside) usleep(1000);
    for (int i = 0; i < 20; i++) free(OPAQUE(malloc(40)));
    return null;
}

static int callback(struct dl_phdr_info *info, size_t size, void *data) {
    if (!inside) {
        inside = 1;
        usleep(100000); // the others are waiting for the lock by now
    }
    free(OPAQUE(malloc(30)));
    return 0;
}

int main(int count, char **arguments) {
    pthread_t threads[2];
    CHECK(count == 2);
    int exits = strcmp(arguments[1], "exit") == 0;
    const char *libraries[] = {"libm.so.6", "libgcc_s.so.1", "libresolv.so.2"};
    for (int i = 0; i < 3; i++) CHECK(dlopen(libraries[i], RTLD_NOW) != NULL);
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, exits ? iterate : allocate, NULL) == 0);
    say(arguments[1]);
    if (exits) {
        usleep(100000);
        exit(3);
    }
    dl_iterate_phdr(callback, NULL);
    for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    return 0;
}
