//! flags: -Wno-infinite-recursion
// setjmp and longjmp with buffers on the heap, out of deep calls, and kept errno.
#include "victim.h"
#include <setjmp.h>

static jmp_buf *buffer;
static int *depth_reached;

__attribute__((noinline)) static void down(int depth, char *parent) {
    char *own = malloc(20);
    own[0] = parent ? (char)(parent[0] + 1) : 1;
    *depth_reached = own[0];
    if (depth == 0) longjmp(*buffer, 3);
    down(depth - 1, own);
    free(own);
}

int main(void) {
    buffer = malloc(sizeof *buffer), depth_reached = malloc(sizeof *depth_reached);
    volatile int jumps = 0;
    for (volatile int i = 0; i < 30; i++) {
        int value = setjmp(*buffer);
        if (value == 0) down(i, NULL);
        CHECK(value == 3 && *depth_reached == i + 1);
        jumps++;
    }
    printf("%d\n", jumps);
    errno = 77;
    char *block = malloc(100000);
    block[99999] = 1;
    CHECK(errno == 77);
    free(block);
    CHECK(errno == 77);
    block = realloc(malloc(10), 5000);
    free(block), free(NULL);
    CHECK(errno == 77);
    return 0;
}
