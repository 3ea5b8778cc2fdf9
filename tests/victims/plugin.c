//! flags: -shared -fPIC
//! helper
// A library that allocates when it is loaded and frees when it is unloaded.
#include "victim.h"
static char *own;
__attribute__((constructor)) static void load(void) { own = malloc(200), fill(own, 200, 5); }
__attribute__((destructor)) static void unload(void) { free(own); }
int plugin_sum(const unsigned char *bytes, int length) {
    int sum = filled(own, 200, 5);
    for (int i = 0; i < length; i++) sum += bytes[i];
    return sum;
}

void plugin_free(void *object) { free(object); }
