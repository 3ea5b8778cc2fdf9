// Makes a program do the same in each run: removes what differs from mode to mode from the environment before the
// program sees it, and gives it random numbers that are always the same.
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

extern char **environ;

// Not by unsetenv: bash has one of its own.
__attribute__((constructor)) static void remove_variables(void) {
    char **to = environ;
    for (char **from = environ; *from; from++)
        if (strncmp(*from, "THERMALLOC_MODE=", 16) != 0 && strncmp(*from, "ORACLE_PADDING=", 15) != 0) *to++ = *from;
    *to = NULL;
}

uint32_t arc4random(void) { return 0x2545f491; }

ssize_t getrandom(void *buffer, size_t length, unsigned flags) {
    (void)flags;
    memset(buffer, 0x5a, length);
    return (ssize_t)length;
}
