// Parent and child each see their own heap after fork, over several generations and sizes of object.
#include "victim.h"
#include <sys/mman.h>
#include <sys/wait.h>

enum { OBJECTS = 6 };
static const size_t sizes[OBJECTS] = {48, 100, 1000, 5000, 200000, 3 << 20};
static char *objects[OBJECTS];

// Touches both ends of an object only: each access costs.
static void stamp(int i, unsigned seed) {
    fill(objects[i], 20, seed + i), fill(objects[i] + sizes[i] - 20, 20, seed + i);
}
static int stamped(int i, unsigned seed) {
    return filled(objects[i], 20, seed + i) && filled(objects[i] + sizes[i] - 20, 20, seed + i);
}

static void generation(int depth, unsigned seed) {
    int up[2], down[2];
    char byte;
    CHECK(pipe(up) == 0 && pipe(down) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        for (int i = 0; i < OBJECTS; i++) CHECK(stamped(i, seed)), stamp(i, seed + 1000);
        CHECK(write(up[1], "c", 1) == 1 && read(down[0], &byte, 1) == 1);
        for (int i = 0; i < OBJECTS; i++) CHECK(stamped(i, seed + 1000));
        for (int i = 0; i < OBJECTS; i++) free(objects[i]), objects[i] = malloc(sizes[i]), stamp(i, seed + 2000);
        if (depth > 0) generation(depth - 1, seed + 2000);
        _exit(depth + 10);
    }
    close(up[1]);
    CHECK(read(up[0], &byte, 1) == 1);
    for (int i = 0; i < OBJECTS; i++) CHECK(stamped(i, seed)), stamp(i, seed + 3000);
    CHECK(write(down[1], "p", 1) == 1);
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == depth + 10);
    for (int i = 0; i < OBJECTS; i++) CHECK(stamped(i, seed + 3000)), stamp(i, seed);
    close(up[0]), close(down[0]), close(down[1]);
}

int main(void) {
    // Shared memory stays shared: only the heap is copied.
    int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < OBJECTS; i++) objects[i] = malloc(sizes[i]), stamp(i, 1);
    generation(2, 1);
    for (int i = 0; i < 10; i++) {
        pid_t child = fork();
        if (child == 0) {
            char *block = malloc(5000 + i);
            fill(block, 100, i);
            CHECK(filled(block, 100, i));
            free(block);
            ++*shared;
            exit(i);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == i);
    }
    CHECK(*shared == 10);
    say("ok");
    return 0;
}
