//! flags: -static
//! helper
// A program that LD_PRELOAD cannot reach.
#include "victim.h"
int main(int count, char **arguments) {
    char *copy = strdup(count > 1 ? arguments[1] : "nothing");
    printf("static %s\n", copy);
    free(copy);
    return 3;
}
