//! flags: -Wl,-init,first
// The heap is used before main, after main, and by every hook that runs in between.
#include "victim.h"

static char *early, *earliest;
static void hook(void) { CHECK(filled(early, 300, 1)), free(early), say("atexit"); }

void first(void) { earliest = calloc(10, 10); }
__attribute__((constructor(101))) static void construct(void) {
    early = malloc(300);
    fill(early, 300, 1);
    CHECK(setenv("FROM_CONSTRUCTOR", "yes", 1) == 0);
}
__attribute__((destructor)) static void destruct(void) {
    char *late = strdup("destructor");
    say(late);
    free(late);
}

int main(void) {
    CHECK(filled(early, 300, 1) && earliest != NULL);
    for (int i = 0; i < 100; i++) CHECK(earliest[i] == 0);
    free(earliest);
    CHECK(atexit(hook) == 0);
    say(getenv("FROM_CONSTRUCTOR"));
    return 0;
}
