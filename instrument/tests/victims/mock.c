/* A runtime for tests. Its arena is mapped twice; the program view cannot be accessed, so what was not redirected
 * (alias) or wrapped (wrpkru) dies. Protection keys are imitated: RDPKRU and WRPKRU raise SIGILL where the machine has
 * none, and the handler opens or closes the program view. MOCK_OPEN=1 leaves the program view open: for programs
 * whose system calls and libraries meet the arena; malloc then comes from the arena (malloc.c).
 * Not instrumented. One thread's windows open the view for all: victims with threads use the alias. */
#define _GNU_SOURCE
#include "mock.h"
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

struct module {
    uint32_t version, shape;
    uint64_t base, length;
    int64_t displacement;
    uint32_t open, has_pku;
};

#define ARENA (1ull << 30)
#define THREADS 64
#define KEY_BITS 0xcu

struct cell {
    uint32_t reads;
    int32_t read_extra;
    uint32_t writes;
    int32_t write_extra;
};

static char *program, *alias;
static size_t used = 4096;
static struct cell *cells[THREADS];
static int threads;
static struct heat *ranges;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t shape, attached, fake_pkru = 0x55555554;
static uint64_t lost[4];
uint64_t mock_overflows[4], mock_wrpkru, mock_range_calls;

static void *map(size_t length) {
    return mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static void die(const char *why) {
    if (write(2, why, strlen(why)) < 0)
        _exit(4);
    _exit(3);
}

static void protect(int open) {
    static int never = -1;
    if (never < 0)
        never = getenv("MOCK_OPEN") != NULL;
    if (never)
        return;
    if (mprotect(program, ARENA, open ? PROT_READ | PROT_WRITE : PROT_NONE) != 0)
        die("mock: mprotect\n");
}

/* RDPKRU is 0f 01 ee, WRPKRU 0f 01 ef. */
static void illegal(int signal, siginfo_t *info, void *context) {
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *code = (void *)r[REG_RIP];
    (void)signal, (void)info;
    if (code[0] != 0x0f || code[1] != 0x01 || (r[REG_RCX] & 0xffffffff) != 0)
        die("mock: illegal instruction\n");
    if (code[2] == 0xee) {
        r[REG_RAX] = fake_pkru;
        r[REG_RDX] = 0;
    } else if (code[2] == 0xef && (r[REG_RDX] & 0xffffffff) == 0) {
        mock_wrpkru++;
        fake_pkru = (uint32_t)r[REG_RAX];
        protect((fake_pkru & KEY_BITS) == 0);
    } else {
        die("mock: illegal instruction\n");
    }
    r[REG_RIP] += 3;
}

static void start(void) {
    if (program)
        return;
    int file = memfd_create("arena", 0);
    if (file < 0 || ftruncate(file, ARENA) != 0)
        die("mock: memfd\n");
    program = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    alias = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    close(file);
    protect(0);
    ranges = map(ARENA / 16 * sizeof *ranges);
    fake_pkru |= KEY_BITS;
    struct sigaction action = {.sa_sigaction = illegal, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGILL, &action, NULL);
}

void *mock_heap(size_t size) {
    start();
    pthread_mutex_lock(&lock);
    size_t at = used;
    used += (size + 63) / 64 * 64 + 64;
    pthread_mutex_unlock(&lock);
    if (used > ARENA)
        die("mock: full\n");
    return program + at;
}

void *mock_view(void *p) {
    return (char *)p + (alias - program);
}

int mock_counts(void) {
    return attached && shape != 3;
}

struct heat mock_heat(void *p, size_t size) {
    struct heat sum = {0, 0, 0, 0};
    for (size_t i = ((char *)p - program) / 16; i <= ((char *)p - program + size - 1) / 16; i++) {
        sum.reads += ranges[i].reads, sum.read_bytes += ranges[i].read_bytes;
        sum.writes += ranges[i].writes, sum.write_bytes += ranges[i].write_bytes;
        for (int thread = 0; thread < threads; thread++) {
            struct cell *cell = cells[thread] + i;
            sum.reads += cell->reads, sum.read_bytes += 8ull * cell->reads + cell->read_extra;
            sum.writes += cell->writes, sum.write_bytes += 8ull * cell->writes + cell->write_extra;
        }
    }
    return sum;
}

void thermalloc_instrument_attach(struct module *module) {
    start();
    if (module->version != 1 || (attached && shape != module->shape))
        die("mock: unknown version, or shapes mixed\n");
    if (getenv("MOCK_IDLE"))
        return;
    attached++;
    shape = module->shape;
    module->displacement = alias - program;
    module->open = KEY_BITS;
    module->has_pku = 1;
    module->base = (uint64_t)program;
    module->length = ARENA;
}

void thermalloc_instrument_detach(struct module *module) {
    if (module->length == 0)
        return;
    module->length = 0;
    if (--attached == 0 && getenv("MOCK_TELL")) {
        struct heat heat = mock_heat(program, ARENA);
        fprintf(stderr, "mock: shape %u: %lu reads, %lu writes, %lu ranges, %lu wrpkru\n", shape, heat.reads,
                heat.writes, mock_range_calls, mock_wrpkru);
    }
}

uint64_t thermalloc_instrument_thread(void) {
    pthread_mutex_lock(&lock);
    if (threads == THREADS)
        die("mock: too many threads\n");
    struct cell *mine = cells[threads++] = map(ARENA);
    pthread_mutex_unlock(&lock);
    return (uint64_t)mine - (uint64_t)program;
}

void thermalloc_instrument_overflow(uint64_t cell, uint32_t which) {
    (void)cell;
    __atomic_fetch_add(&mock_overflows[which], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&lost[which], 1ull << 32, __ATOMIC_RELAXED);
}

void thermalloc_instrument_access(uint64_t address, uint64_t length, uint32_t kinds) {
    __atomic_fetch_add(&mock_range_calls, 1, __ATOMIC_RELAXED);
    if (address - (uint64_t)program >= ARENA)
        return;
    struct heat *heat = ranges + (address - (uint64_t)program) / 16;
    if (length == 0)
        die("mock: an access of no bytes\n");
    if (kinds & 1) {
        __atomic_fetch_add(&heat->reads, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&heat->read_bytes, length, __ATOMIC_RELAXED);
    }
    if (kinds & 2) {
        __atomic_fetch_add(&heat->writes, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&heat->write_bytes, length, __ATOMIC_RELAXED);
    }
}

uint64_t mock_digest(void) {
    uint64_t digest = 14695981039346656037u;
    for (char *p = program; p < program + used; p += 16) {
        struct heat heat = mock_heat(p, 1);
        const uint64_t parts[4] = {heat.reads, heat.read_bytes, heat.writes, heat.write_bytes};
        for (int i = 0; i < 4; i++)
            digest = (digest ^ parts[i]) * 1099511628211u;
    }
    return digest;
}

void mock_set_cell(void *p, const uint32_t values[4]) {
    if (threads != 1)
        die("mock: set_cell needs one thread that has counted\n");
    memcpy(cells[0] + ((char *)p - program) / 16, values, sizeof(struct cell));
}
