// A timer's handler reads and writes the heap while the program is inside malloc, free, or a step.
#include "victim.h"
#include <signal.h>

static volatile unsigned *shared;
static volatile sig_atomic_t due = 1;

static void on_alarm(int signal) {
    (void)signal;
    int saved = errno;
    for (int i = 1; i < 16; i++) CHECK(shared[i] == shared[1]);
    for (int i = 1; i < 16; i++) shared[i]++;
    shared[0]++;
    due = 1;
    errno = saved;
}

int main(void) {
    shared = calloc(16, sizeof *shared);
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    char *blocks[64] = {0};
    for (unsigned i = 0; shared[0] < 60; i++) {
        if (due) due = 0, alarm_once(2000);
        unsigned slot = i * 17 % 64, size = 16 + i * 37 % 3000;
        free(blocks[slot]);
        blocks[slot] = malloc(size);
        blocks[slot][0] = (char)slot;
        blocks[slot][size - 1] = (char)size;
        CHECK(blocks[slot][0] == (char)slot && blocks[slot][size - 1] == (char)size);
    }
    alarm_once(0);
    say("ok");
    return 0;
}
