// What all victims share: checks that end the program with a line that names what broke.
#ifndef VICTIM_H
#define VICTIM_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

__attribute__((unused, noreturn, cold)) static void check_failed(const char *file, int line, const char *condition) {
    char text[300];
    int length = snprintf(text, sizeof text, "%s:%d: failed: %s (errno %d)\n", file, line, condition, errno);
    if (write(2, text, length) < 0) {}
    _exit(99);
}
#define CHECK(condition) ((condition) ? (void)0 : check_failed(__FILE__, __LINE__, #condition))

// Prints a line that stdout shows even if the program dies next.
static inline void say(const char *text) {
    if (write(1, text, strlen(text)) < 0 || write(1, "\n", 1) < 0) _exit(98);
}

// The address as the compiler must not know it: keeps accesses to the heap from being optimised away.
#define OPAQUE(pointer) ({ __typeof__(pointer) opaque_ = (pointer); __asm__ volatile("" : "+r"(opaque_)::"memory"); opaque_; })

// One SIGALRM after so many microseconds; none for 0. A timer that comes back by itself leaves no time between two
// handlers where an access takes longer than its interval.
__attribute__((unused)) static void alarm_once(long us) {
    struct itimerval once = {{0, 0}, {0, us}};
    CHECK(setitimer(ITIMER_REAL, &once, NULL) == 0);
}

static inline void fill(char *bytes, size_t length, unsigned seed) {
    for (size_t i = 0; i < length; i++) bytes[i] = (char)(seed * 31 + i * 7);
    OPAQUE(bytes);
}

static inline int filled(const char *bytes, size_t length, unsigned seed) {
    OPAQUE(bytes);
    for (size_t i = 0; i < length; i++)
        if (bytes[i] != (char)(seed * 31 + i * 7)) return 0;
    return 1;
}
#endif
