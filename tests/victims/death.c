//! flags: -pthread
//! run: return => exit 7
//! run: exit => exit 8
//! run: _exit => exit 3
//! run: quick_exit => exit 4
//! run: abort => signal 6
//! run: null => signal 11
//! run: kill-segv => signal 11
//! run: wild => signal 11
//! run: stack => signal 11
//! run: ignored-segv => signal 11
//! run: blocked-segv => signal 11
//! run: reset-segv => signal 11
//! run: illegal => signal 4
//! run: divide => signal 8
//! run: trap => signal 5
//! run: sys => signal 31
//! run: bus => signal 7
//! run: term => signal 15
//! run: kill => signal 9
//! run: thread => exit 5
//! run: handler => exit 6
//! run: fault-handler => exit 9
//! run: main-pthread-exit => exit 0
//! run: thread-null => signal 11
// Each way for a program to end: its output is complete as far as natively, and its status the same.
#include "victim.h"
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

static char *block;
static void last(void) {
    fill(block, 100, 2);
    CHECK(filled(block, 100, 2));
    say("last words");
    free(block);
    free(malloc(1000));
}
static void in_handler(int signal) { exit(signal == SIGUSR1 ? 6 : 9); }
static void *exits(void *null) {
    fill(block, 100, 4);
    exit(5);
    return null;
}
static void *faults(void *null) { return *(void **)OPAQUE(null); }
static void *returns(void *null) {
    usleep(20000);
    say("thread ends");
    return null;
}
__attribute__((noinline)) static long overflow(long depth) {
    volatile char frame[4096];
    frame[0] = (char)depth;
    return depth > 0 ? overflow(depth + 1) + frame[0] : 0;
}

static void die(const char *how) {
    volatile int zero = 0;
    char *null = OPAQUE((char *)NULL);
    pthread_t thread;
    sigset_t set;
    sigemptyset(&set), sigaddset(&set, SIGSEGV);
#define IS(word) (strcmp(how, word) == 0)
    if (IS("exit")) exit(8);
    if (IS("_exit")) _exit(3);
    if (IS("quick_exit")) at_quick_exit(last), quick_exit(4);
    if (IS("abort")) abort();
    if (IS("null")) *null = 1;
    if (IS("kill-segv")) kill(getpid(), SIGSEGV);
    if (IS("wild")) *(volatile char *)OPAQUE((char *)0x8000000000001000) = 1;
    if (IS("stack")) overflow(1);
    if (IS("ignored-segv")) signal(SIGSEGV, SIG_IGN), *null = 1;
    if (IS("blocked-segv")) pthread_sigmask(SIG_BLOCK, &set, NULL), *null = 1;
    if (IS("reset-segv")) signal(SIGSEGV, in_handler), signal(SIGSEGV, SIG_DFL), *null = 1;
    if (IS("illegal")) __asm__ volatile("ud2");
    if (IS("divide")) __asm__ volatile("idivl %1" ::"a"(1), "m"(zero), "d"(0) : "cc");
    if (IS("trap")) __asm__ volatile("int3");
    if (IS("sys")) raise(SIGSYS);
    if (IS("bus")) *(volatile char *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(tmpfile()), 0) = 1;
    if (IS("term")) raise(SIGTERM);
    if (IS("kill")) raise(SIGKILL);
    if (IS("thread")) pthread_create(&thread, NULL, exits, NULL), pthread_join(thread, NULL);
    if (IS("handler")) signal(SIGUSR1, in_handler), raise(SIGUSR1);
    if (IS("fault-handler")) signal(SIGSEGV, in_handler), *null = 1;
    if (IS("main-pthread-exit")) pthread_create(&thread, NULL, returns, NULL), pthread_exit(NULL);
    if (IS("thread-null")) pthread_create(&thread, NULL, faults, NULL), pthread_join(thread, NULL);
}

int main(int count, char **arguments) {
    block = malloc(100);
    fill(block, 100, 1);
    CHECK(filled(block, 100, 1) && count == 2);
    atexit(last);
    say(arguments[1]);
    die(arguments[1]);
    return 7;
}
