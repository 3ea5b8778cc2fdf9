// What a core dump of this process would hold: its objects, but not the heap's address space, most of which has never been touched, and
// which would be filled by being read.
#include "victim.h"

static const char KEPT_OUT[] = " dd";

int main(void) {
    char *object = malloc(100), line[1024];
    fill(object, 100, 1);
    FILE *maps = fopen("/proc/self/smaps", "r");
    CHECK(maps);
    unsigned long start = 0, end = 0, dumped = 0, from, to;
    int has_object = 0, is_shared = 0;
    char permissions[5];
    while (fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx %4s", &from, &to, permissions) == 3) {
            start = from, end = to, is_shared = permissions[3] == 's';
        } else if (strncmp(line, "VmFlags:", 8) == 0 && !strstr(line, KEPT_OUT)) {
            if (is_shared) dumped += end - start;
            has_object |= start <= (unsigned long)object && (unsigned long)object < end;
        }
    }
    CHECK(fclose(maps) == 0);
    printf("%s\n", dumped < 4UL << 30 ? "small" : "large");
    printf("%s\n", has_object ? "with the object" : "without the object");
    return 0;
}
