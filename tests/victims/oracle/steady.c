// Makes a program do the same in each run: removes what differs from mode to mode from the environment before the
// program sees it, and gives it random numbers that are always the same.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

__attribute__((constructor)) static void remove_variables(void) {
    unsetenv("THERMALLOC_MODE");
    unsetenv("ORACLE_PADDING");
}

uint32_t arc4random(void) { return 0x2545f491; }

ssize_t getrandom(void *buffer, size_t length, unsigned flags) {
    (void)flags;
    memset(buffer, 0x5a, length);
    return (ssize_t)length;
}
