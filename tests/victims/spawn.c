//! run: => exit 4
// Every way to start a program, with paths, arguments and environment on the heap.
#include "victim.h"
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

static int ended(pid_t child) {
    int *status = malloc(sizeof *status), code;
    CHECK(child > 0 && waitpid(child, status, 0) == child && WIFEXITED(*status));
    code = WEXITSTATUS(*status);
    free(status);
    return code;
}

// argv = sh -c SCRIPT, wholly on the heap.
static char **shell(const char *script) {
    char **list = malloc(4 * sizeof *list);
    list[0] = strdup("sh"), list[1] = strdup("-c"), list[2] = strdup(script), list[3] = NULL;
    return list;
}

// The environment with one more variable, wholly on the heap.
static char **environment(const char *extra) {
    int count = 0;
    while (environ[count]) count++;
    char **list = malloc((count + 2) * sizeof *list);
    for (int i = 0; i < count; i++) list[i] = strdup(environ[i]);
    list[count] = strdup(extra), list[count + 1] = NULL;
    return list;
}

int main(int count, char **arguments) {
    setvbuf(stdout, NULL, _IONBF, 0);
    if (count > 1 && strcmp(arguments[1], "again") == 0) {
        printf("again %s %s\n", arguments[2], getenv("EXTRA"));
        return 4;
    }
    char *path = strdup("/bin/sh");
    pid_t child = fork();
    if (child == 0) {
        execve(path, shell("echo execve $EXTRA; exit 11"), environment("EXTRA=one"));
        _exit(99);
    }
    CHECK(ended(child) == 11);

    int *touched = OPAQUE((int *)calloc(1, sizeof *touched));
    char **argv = shell("echo vfork; exit 12");
    child = vfork();
    if (child == 0) {
        *OPAQUE(touched) = 5; // memory is shared with the parent, who waits
        execv(path, argv);
        _exit(99);
    }
    CHECK(ended(child) == 12 && *touched == 5);
    child = vfork();
    if (child == 0) _exit(13);
    CHECK(ended(child) == 13);

    posix_spawn_file_actions_t *actions = malloc(sizeof *actions);
    CHECK(posix_spawn_file_actions_init(actions) == 0);
    CHECK(posix_spawn_file_actions_adddup2(actions, 1, 7) == 0);
    CHECK(posix_spawn(&child, path, actions, NULL, shell("echo spawn $EXTRA >&7; exit 14"), environment("EXTRA=two")) == 0);
    CHECK(ended(child) == 14);
    CHECK(posix_spawnp(&child, "no-such-program", NULL, NULL, argv, environ) == ENOENT);
    CHECK(execv("/no/such", argv) == -1 && errno == ENOENT);

    CHECK(system("echo system; exit 15") == 15 << 8);
    FILE *pipe = popen("echo popen; exit 16", "r");
    char *line = NULL;
    size_t size = 0;
    CHECK(pipe && getline(&line, &size, pipe) == 6 && strcmp(line, "popen\n") == 0);
    CHECK(pclose(pipe) == 16 << 8);

    // A static program, which runs without the preloaded library.
    char *sibling = malloc(strlen(arguments[0]) + 20);
    strcpy(sibling, arguments[0]);
    strcpy(strrchr(sibling, '/') + 1, "static_hello");
    char *list[] = {sibling, strdup("argument"), NULL};
    CHECK(posix_spawn(&child, sibling, NULL, NULL, list, environ) == 0);
    CHECK(ended(child) == 3);

    // At last this program becomes another run of itself.
    char *self[] = {strdup("/proc/self/exe"), strdup("again"), strdup("x"), NULL};
    execve(self[0], self, environment("EXTRA=three"));
    return 98;
}
