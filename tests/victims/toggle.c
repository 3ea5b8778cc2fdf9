//! helper
// Accesses that are to be watched, and others between two SIGUSR2 that are not. Prints one JSON line: the object, and how
// often it was read and written while it was watched.
#include "victim.h"
#include <signal.h>

static void increment(char *word, int times) {
    for (int i = 0; i < times; i++) __asm__ volatile("incq (%0)" ::"r"(word) : "memory", "cc");
}

int main(void) {
    char *object = malloc(64);
    int pipes[2];
    CHECK(pipe(pipes) == 0);
    for (int round = 1; round <= 3; round++) {
        increment(object, 100 * round);
        CHECK(raise(SIGUSR2) == 0);
        increment(object, 5000);
        CHECK(write(pipes[1], "x", 1) == 1); // and system calls go on
        CHECK(raise(SIGUSR2) == 0);
        char c;
        CHECK(read(pipes[0], &c, 1) == 1 && c == 'x');
    }
    printf("{\"address\": %lu, \"reads\": 600, \"writes\": 600, \"read_bytes\": 4800, \"write_bytes\": 4800}\n", (unsigned long)object);
    fflush(stdout);
    _exit(0);
}
