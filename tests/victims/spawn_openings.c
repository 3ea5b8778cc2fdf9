// What the kernel reads for a child that borrows its parent's memory is open no longer than the call takes.
#include "victim.h"
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;
static char maps[1 << 22];

// The protection of the page at that address, as /proc/self/maps writes it, in one word.
static int protection(const void *page) {
    int file = open("/proc/self/maps", O_RDONLY), length = 0, got, word = 0;
    CHECK(file >= 0);
    while ((got = read(file, maps + length, sizeof maps - 1 - length)) > 0) length += got;
    maps[length] = 0;
    close(file);
    for (char *line = maps; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        char *dash, *rest;
        uintptr_t start = strtoul(line, &dash, 16), end = strtoul(dash + 1, &rest, 16);
        if ((uintptr_t)page >= start && (uintptr_t)page < end) memcpy(&word, rest + 1, sizeof word);
    }
    CHECK(word != 0);
    return word;
}

static char **arguments(int count) {
    char **list = malloc((count + 1) * sizeof *list);
    list[0] = strdup("true");
    for (int i = 1; i < count; i++) strcpy(list[i] = malloc(5000), "x");
    list[count] = NULL;
    return list;
}

int main(void) {
    int counts[] = {1, 100}; // the second are too many to open one by one
    char *other = malloc(1 << 20);
    for (int i = 0; i < 4; i++) {
        char **list = arguments(counts[i / 2]);
        int before = protection(list), other_before = protection(other + 500000), status;
        pid_t child;
        if (i % 2 == 0) {
            CHECK(posix_spawn(&child, "/bin/true", NULL, NULL, list, environ) == 0);
        } else if ((child = vfork()) == 0) {
            execv("/bin/true", list);
            _exit(99);
        }
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        CHECK(protection(list) == before && protection(other + 500000) == other_before);
    }
    say("ok");
    return 0;
}
