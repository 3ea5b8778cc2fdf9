// Removes what differs from mode to mode from the environment before the program sees it.
#include <stdlib.h>

__attribute__((constructor)) static void scrub(void) {
    unsetenv("THERMALLOC_MODE");
    unsetenv("ORACLE_PADDING");
}
