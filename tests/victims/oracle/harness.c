// Runs generated programs one after the other, each on fresh objects and a state made from its seed, and writes what
// each leaves behind to a file. Linked with the assembly of a batch (tests/src/oracle/source.rs).
//
//   PROGRAM DUMP ADDRESSES ORDER FIRST END
// ORDER: `record`: objects come from malloc, and their addresses go to ADDRESSES; `replay`: memory is mapped at
// those addresses, so that a run without the monitor computes with the same pointers; `timer-alternate` and
// `timer-stack`: as `record`, with a signal every millisecond whose handler runs on a stack of its own or on the program's;
// `replay-timer-...` likewise. Programs FIRST to END - 1 are run.
//
// DUMP: for each program the records of `oracle_dump`, each with a tag and a length in front.
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>
#include <cpuid.h>

enum { OBJECTS = 8, GLOBALS = 4096, STACK = 8192, TLS = 256, FAULTS = 64, CONTENT = 1 << 16 };
enum { STACK_IN_HEAP = 1 };
// Where descriptors lie that programs use; see tests/src/oracle/templates/control.rs.
enum { FD_NULL = 100, FD_CONTENT = 101 };

struct program {
    void *entry;
    uint64_t seed, options, objects;
    uint64_t size[OBJECTS], align[OBJECTS]; // align 1: the next object must follow without a gap
};
extern const struct program oracle_programs[];
extern const uint64_t oracle_program_count;
// Pairs: an instruction that faults, and where to go on.
extern const uintptr_t oracle_faults[], oracle_faults_end[];

struct state {
    uint64_t gpr[16], flags;
};
struct state oracle_state;
uint32_t oracle_components;
void *oracle_entry;
char oracle_vectors[16384] __attribute__((aligned(64)));
// What programs address by name.
char oracle_globals[GLOBALS] __attribute__((aligned(64)));
char *oracle_objects[OBJECTS];
uintptr_t oracle_fs_objects[OBJECTS]; // relative to the base of fs
__thread char oracle_tls[TLS] __attribute__((aligned(64)));
uintptr_t oracle_mixed[8];
char *oracle_guard; // 16 bytes before memory that cannot be accessed
static char stack[STACK] __attribute__((aligned(64)));
static char alternate[65536] __attribute__((aligned(64)));
static char content[CONTENT] __attribute__((aligned(64)));

void oracle_enter(void);

struct fault {
    uint64_t number, code, address, rip, gpr[16], flags, xmm0[2];
};
static struct fault faults[FAULTS];
static uint64_t fault_count, current;
static int timer, replay, dump, addresses;
static volatile uint64_t *tick_object;

static void die(const char *what) {
    fprintf(stderr, "harness, program %lu: %s\n", current, what);
    fflush(stderr);
    _exit(97);
}

static const int order_of_registers[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                           REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
// CF, PF, AF, ZF, SF, DF, OF.
static const uint64_t visible_flags = 0xcd5;

static void on_fault(int number, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    uintptr_t at = registers[REG_RIP];
    if (number == SIGTRAP) at -= 1; // int3
    const uintptr_t *pair = oracle_faults;
    while (pair < oracle_faults_end && pair[0] != at) pair += 2;
    if (fault_count < FAULTS) {
        struct fault *fault = &faults[fault_count];
        fault->number = number;
        fault->code = info->si_code;
        // int3 and the like have no address.
        fault->address = number == SIGTRAP ? 0 : (uintptr_t)info->si_addr;
        fault->rip = registers[REG_RIP];
        for (int i = 0; i < 16; i++) fault->gpr[i] = registers[order_of_registers[i]];
        fault->flags = registers[REG_EFL] & visible_flags;
        memcpy(fault->xmm0, &((ucontext_t *)context)->uc_mcontext.fpregs->_xmm[0], 16);
    }
    fault_count++;
    if (pair >= oracle_faults_end) {
        fprintf(stderr, "signal %d code %d address %p rip %p\n", number, info->si_code, info->si_addr, (void *)at);
        for (int i = 0; i < 16; i++) fprintf(stderr, "  gpr%d %#llx\n", i, registers[order_of_registers[i]]);
        die("a fault that no program expects");
    }
    if (fault_count > 100000) die("faults without an end");
    registers[REG_RIP] = pair[1];
}

static void on_tick(int number) {
    (void)number;
    // Touches the heap and whatever a handler may change without saving it.
    tick_object[0] += 1;
    __asm__ volatile("pcmpeqd %%xmm0, %%xmm0; movdqa %%xmm0, %%xmm7; xor %%eax, %%eax; std; cld"
                     ::: "eax", "xmm0", "xmm7", "cc");
    if (tick_object[1] != tick_object[2]) die("the handler's object is damaged");
}

static uint64_t random_state;
static uint64_t next_random(void) { // splitmix64
    uint64_t z = random_state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static void random_bytes(void *at, size_t length) {
    for (size_t i = 0; i + 8 <= length; i += 8) {
        uint64_t value = next_random();
        // Zeroes and small numbers are where flags and branches differ.
        switch (value >> 61) {
        case 0: value = 0; break;
        case 1: value &= 0xff; break;
        case 2: value |= 0xffffffff00000000; break;
        }
        memcpy((char *)at + i, &value, 8);
    }
}

// One access of the whole length, whatever libc does.
static void copy(void *to, const void *from, size_t length) {
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(length)::"memory");
}

static void record(uint64_t tag, const void *bytes, uint64_t length) {
    uint64_t head[2] = {tag, length};
    if (write(dump, head, sizeof head) != sizeof head || write(dump, bytes, length) != (ssize_t)length)
        die("cannot write the dump");
}

struct object {
    uint64_t address, usable;
};

static void map_replayed(const struct object *object) {
    uintptr_t page = object->address & ~(uintptr_t)4095, end = object->address + object->usable;
    for (; page < end; page += 4096) {
        void *got = mmap((void *)page, 4096, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (got != (void *)page && got != MAP_FAILED) die("MAP_FIXED_NOREPLACE");
    }
}

static struct object allocate(const struct program *program, int i) {
    struct object object;
    if (replay) {
        if (read(addresses, &object, sizeof object) != sizeof object) die("no more addresses");
        map_replayed(&object);
        return object;
    }
    uint64_t align = program->align[i];
    char *got = align > 1 ? memalign(align, program->size[i]) : malloc(program->size[i]);
    if (!got) die("out of memory");
    object.address = (uintptr_t)got;
    object.usable = malloc_usable_size(got);
    if (write(addresses, &object, sizeof object) != sizeof object) die("cannot write addresses");
    return object;
}

// Two objects without a gap between them; what comes before is not used.
static void allocate_neighbours(const struct program *program, int i, struct object *pair) {
    for (int attempt = 0; !replay; attempt++) {
        char *first = attempt ? (char *)pair[1].address : malloc(program->size[i]);
        char *second = malloc(program->size[i]);
        if (!second || attempt > 5000) die("no two objects are neighbours");
        for (int k = 0; k < 2; k++) {
            pair[k].address = (uintptr_t)(k ? second : first);
            pair[k].usable = malloc_usable_size(k ? second : first);
        }
        if (first + pair[0].usable != second) continue;
        if (write(addresses, pair, 2 * sizeof *pair) != 2 * sizeof *pair) die("cannot write addresses");
        return;
    }
    for (int k = 0; k < 2; k++) pair[k] = allocate(program, i + k);
}

static uintptr_t fs_base(void) {
    uintptr_t base;
    __asm__("mov %%fs:0, %0" : "=r"(base));
    return base;
}

static void prepare(const struct program *program, struct object *objects) {
    for (uint64_t i = 0; i < program->objects; i++) {
        if (program->align[i] == 1) allocate_neighbours(program, i, &objects[i]);
        else if (!i || program->align[i - 1] != 1) objects[i] = allocate(program, i);
        oracle_objects[i] = (char *)objects[i].address;
        oracle_fs_objects[i] = objects[i].address - fs_base();
    }
    random_state = program->seed;
    for (uint64_t i = 0; i < program->objects; i++) {
        if (objects[i].usable > CONTENT) die("an object is too large");
        random_bytes(content, CONTENT < objects[i].usable + 8 ? CONTENT : objects[i].usable + 8);
        copy(oracle_objects[i], content, objects[i].usable);
    }
    random_bytes(oracle_globals, GLOBALS);
    random_bytes(stack, STACK);
    random_bytes(oracle_guard, 16);
    random_bytes(oracle_tls, TLS);
    random_bytes(oracle_state.gpr, sizeof oracle_state.gpr);
    memset(oracle_mixed, 0, sizeof oracle_mixed);
    memset(oracle_vectors, 0, sizeof oracle_vectors);
    random_bytes(oracle_vectors + 160, 256);  // xmm
    random_bytes(oracle_vectors + 576, 8192); // what lies behind, if there is any
    // Opmasks and upper halves at random; x87 empty; all exceptions masked, some rounding.
    *(uint16_t *)oracle_vectors = 0x37f;
    *(uint32_t *)(oracle_vectors + 24) = 0x1f80 | (next_random() & 3) << 13;
    *(uint64_t *)(oracle_vectors + 512) = oracle_components;
    oracle_state.flags = (next_random() & 0x8d5) | 0x202;
    char *top = stack + STACK - 1024;
    if (program->options & STACK_IN_HEAP) {
        // The last object serves as the stack.
        struct object *last = &objects[program->objects - 1];
        top = (char *)last->address + (last->usable - 1024) / 64 * 64;
    }
    oracle_state.gpr[4] = (uintptr_t)top;
    oracle_entry = program->entry;
    fault_count = 0;
    memset(faults, 0, sizeof faults);
}

static void clear_below_red_zone(void) {
    char *end = (char *)oracle_state.gpr[4] - 128;
    if (end > stack && end < stack + STACK) memset(stack, 0, end - stack);
}

static void dump_program(const struct program *program, const struct object *objects) {
    if (timer) clear_below_red_zone();
    oracle_state.flags &= visible_flags;
    record('R', &oracle_state, sizeof oracle_state);
    record('V', oracle_vectors, sizeof oracle_vectors);
    record('F', &fault_count, sizeof fault_count);
    record('f', faults, sizeof *faults * (fault_count < FAULTS ? fault_count : FAULTS));
    record('G', oracle_globals, GLOBALS);
    record('S', stack, STACK);
    record('T', oracle_tls, TLS);
    record('g', oracle_guard, 16);
    for (uint64_t i = 0; i < program->objects; i++) {
        // A timer's frames lie there too.
        if (timer && program->options & STACK_IN_HEAP && i == program->objects - 1) continue;
        record('0' + i, (void *)objects[i].address, objects[i].usable);
    }
}

static void set_components(void) {
    unsigned a, b, c, d;
    __cpuid_count(0xd, 0, a, b, c, d);
    oracle_components = a & 0xe7; // x87, SSE, AVX, AVX-512
    __cpuid_count(0xd, 0, a, b, c, d);
    if (b > sizeof oracle_vectors) die("a larger XSAVE area than expected");
}

static void open_at(int number, const char *path, int flags) {
    int fd = open(path, flags, 0600);
    if (fd < 0 || dup2(fd, number) != number) die(path);
    close(fd);
}

static void map_guard(void) {
    char *pages = mmap((void *)0x600000000000, 2 * 4096, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + 4096, 4096, PROT_NONE) != 0) die("no guard page");
    oracle_guard = pages + 4096 - 16;
}

static void set_signals(const char *order) {
    stack_t signal_stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    sigaltstack(&signal_stack, NULL);
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) sigaction(numbers[i], &action, NULL);
    if (!timer) return;
    static uint64_t replayed[3];
    tick_object = replay ? replayed : calloc(3, sizeof *tick_object);
    struct sigaction tick = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    if (strstr(order, "alternate")) tick.sa_flags |= SA_ONSTACK;
    sigaction(SIGALRM, &tick, NULL);
    struct itimerval interval = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &interval, NULL);
}

int main(int argc, char **argv) {
    if (argc != 6) die("usage");
    replay = strncmp(argv[3], "replay", 6) == 0;
    timer = strstr(argv[3], "timer") != NULL;
    open_at(102, argv[1], O_WRONLY | O_CREAT | O_TRUNC);
    dump = 102;
    open_at(103, argv[2], replay ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC);
    addresses = 103;
    open_at(FD_NULL, "/dev/null", O_WRONLY);
    open_at(FD_CONTENT, argv[0], O_RDONLY);
    set_components();
    map_guard();
    set_signals(argv[3]);
    uint64_t end = strtoul(argv[5], NULL, 10);
    for (current = strtoul(argv[4], NULL, 10); current < end && current < oracle_program_count; current++) {
        struct object objects[OBJECTS] = {0};
        record('P', &current, sizeof current);
        prepare(&oracle_programs[current], objects);
        record('A', objects, sizeof objects);
        oracle_enter();
        dump_program(&oracle_programs[current], objects);
    }
    record('E', "", 0);
    return 0;
}
