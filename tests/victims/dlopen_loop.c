//! flags: -ldl
// A library loaded and unloaded again and again: its code, which touches the heap, comes and goes.
#include "victim.h"
#include <dlfcn.h>

int main(int count, char **arguments) {
    (void)count;
    char *path = malloc(strlen(arguments[0]) + 20);
    strcpy(path, arguments[0]);
    strcpy(strrchr(path, '/') + 1, "plugin");
    unsigned char *bytes = malloc(50);
    int total = 0;
    for (int i = 0; i < 20; i++) {
        memset(bytes, i, 50);
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library) fprintf(stderr, "%s\n", dlerror());
        CHECK(library);
        int (*sum)(const unsigned char *, int) = (int (*)(const unsigned char *, int))dlsym(library, "plugin_sum");
        CHECK(sum);
        total += sum(bytes, 50);
        CHECK(dlclose(library) == 0);
    }
    CHECK(dlopen("/no/such/library.so", RTLD_NOW) == NULL && dlerror() != NULL);
    printf("%d\n", total);
    return 0;
}
