//! flags: -ldl
// Many libraries side by side, each of which works on the heap: their code caches must find room.
#include "victim.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

enum { COPIES = 24 };

static void copy(const char *from, const char *to) {
    struct stat status;
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_EXCL, 0700);
    CHECK(in >= 0 && out >= 0 && fstat(in, &status) == 0);
    CHECK(sendfile(out, in, NULL, status.st_size) == status.st_size);
    CHECK(close(in) == 0 && close(out) == 0);
}

int main(int count, char **arguments) {
    (void)count;
    char plugin[4096], folder[] = "/tmp/many-plugins-XXXXXX", path[64];
    snprintf(plugin, sizeof plugin, "%s", arguments[0]);
    strcpy(strrchr(plugin, '/') + 1, "plugin");
    CHECK(mkdtemp(folder));
    unsigned char *bytes = malloc(50);
    memset(bytes, 3, 50);
    int total = 0;
    for (int i = 0; i < COPIES; i++) {
        snprintf(path, sizeof path, "%s/%d.so", folder, i);
        copy(plugin, path);
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        CHECK(library && unlink(path) == 0);
        int (*sum)(const unsigned char *, int) = (int (*)(const unsigned char *, int))dlsym(library, "plugin_sum");
        CHECK(sum);
        for (int n = 0; n < 50; n++) total += sum(bytes, 50);
    }
    CHECK(rmdir(folder) == 0);
    printf("%d\n", total);
    return 0;
}
