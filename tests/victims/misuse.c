//! misuse
//! run: double => signal 6
//! run: double-large => signal 6
//! run: interior => signal 6
//! run: interior-large => signal 6
//! run: stack => signal 6
//! run: static => signal 6
//! run: mapped => signal 6
//! run: realloc-freed => signal 6
//! run: realloc-foreign => signal 6
//! run: double-late => signal 6
//! run: double-thread => signal 6
//! flags: -pthread -Wno-all
// Each misuse of free, one a run: the program says the pointer on stdout, the allocator names it on stderr and aborts.
#include "victim.h"
#include <pthread.h>
#include <sys/mman.h>

static char global[64];
static void point(void *pointer) { printf("%p\n", pointer), fflush(stdout); }
static void *frees(void *pointer) { return free(pointer), NULL; }

int main(int count, char **arguments) {
    const char *how = count > 1 ? arguments[1] : "";
    char local[64], *small = OPAQUE((char *)malloc(100)), *large = OPAQUE((char *)malloc(5 << 20));
    char *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_t thread;
#define IS(word) (strcmp(how, word) == 0)
    if (IS("double")) point(small), free(small), free(OPAQUE(small));
    if (IS("double-large")) point(large), free(large), free(OPAQUE(large));
    if (IS("interior")) point(small + 16), free(OPAQUE(small + 16));
    if (IS("interior-large")) point(large + 4096), free(OPAQUE(large + 4096));
    if (IS("stack")) point(local), free(OPAQUE(&local[0]));
    if (IS("static")) point(global), free(OPAQUE(&global[0]));
    if (IS("mapped")) point(mapped), free(OPAQUE(mapped));
    if (IS("realloc-freed")) point(small), free(small), OPAQUE(realloc(OPAQUE(small), 300));
    if (IS("realloc-foreign")) point(global), OPAQUE(realloc(OPAQUE(&global[0]), 300));
    if (IS("double-late")) {
        char *others[50];
        for (int i = 0; i < 50; i++) others[i] = OPAQUE((char *)malloc(100));
        point(small), free(small);
        for (int i = 0; i < 50; i++) free(others[i]);
        free(OPAQUE(small));
    }
    if (IS("double-thread")) {
        point(small), free(small);
        pthread_create(&thread, NULL, frees, OPAQUE(small)), pthread_join(thread, NULL);
    }
    printf("survived\n");
    return 0;
}
