//! flags: -pthread -masm=intel -Wno-unused-function
//! helper
// Threads that come to the same fresh code at once, each with objects of its own, while signals reach all of them: what is patched under
// one thread's feet must do for it what it did before. Each case runs in all threads from a spinning barrier. Output, one line each:
//   case LABEL THREAD ADDRESS        the object of a case, whose counts are the same in each run
//   handled THREAD ADDRESS COUNT     the object of a thread's handler, written COUNT times
#include "exact.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>

enum { THREADS = 8 };

// Functions without a gap: the window of a patch in one reaches into the next, which is called by itself too.
__asm__(".text\n"
        "short_load: mov al, [rdi]\n ret\n"
        "short_store: mov [rdi], cl\n ret\n"
        "short_inc: inc dword ptr [rdi]\n ret\n"
        "short_lock: lock inc byte ptr [rdi]\n ret\n"
        "short_push: push [rdi]\n pop rax\n ret\n"
        "short_pop: push rcx\n pop [rdi]\n ret\n"
        "short_jump: mov [rdi], ecx\n jmp short_load\n"
        "short_flags: cmp eax, eax\n mov ecx, [rdi]\n sete [rdi+8]\n ret\n"
        // Jumps lead into the window of the first access.
        "into_window: mov eax, [rdi]\n 1: inc dword ptr [rdi+4]\n dec ecx\n jnz 1b\n ret\n"
        "into_both: jmp 2f\n 1: add [rdi], ecx\n 2: add [rdi+8], ecx\n 3: dec ecx\n jz 4f\n test cl, 1\n jz 1b\n jmp 2b\n 4: ret\n"
        "jump_table: lea rdx, [rip+5f]\n lea rdx, [rdx+rcx*2]\n jmp rdx\n"
        "5: mov [rdi], cl\n mov al, [rdi]\n mov [rdi], cl\n mov al, [rdi]\n mov [rdi], al\n ret\n"
        "loop_short: mov al, [rdi]\n loop loop_short\n jrcxz 6f\n ud2\n 6: ret\n");

typedef void Short(void *object, long unused2, long unused3, long count);
#define SHORT(name)                                                          \
    Short name;                                                              \
    static void run_##name(char *object) {                                   \
        for (int i = 0; i < LOOPS; i++) name(object + i % 3 * 16, 0, 0, 5);  \
    }
SHORT(short_load)
SHORT(short_store)
SHORT(short_inc)
SHORT(short_lock)
SHORT(short_push)
SHORT(short_pop)
SHORT(short_jump)
SHORT(short_flags)
SHORT(into_window)
SHORT(into_both)
SHORT(loop_short)
Short jump_table;
static void run_jump_table(char *object) {
    for (int i = 0; i < LOOPS; i++) jump_table(object, 0, 0, i % 5);
}

static void masked512(char *object) {
    for (int i = 0; i < LOOPS; i++)
        __asm__ volatile("mov eax, 0x55f\n kmovw k1, eax\n vmovdqu32 zmm1{k1}{z}, [%0]\n vmovdqu32 [%0+64]{k1}, zmm1\n vzeroupper"
                         ::"r"(object) : "rax", "xmm1", "memory");
}

// It leaves an address of the stack behind.
static void run_stack(char *object) {
    stack(object);
    __asm__ volatile("mov qword ptr [%0+4088], 0" ::"r"(object) : "memory");
}

// A table of functions in the object, as of a class.
static void virtual_calls(char *object) {
    void (**table)(char *) = OPAQUE((void (**)(char *))object);
    table[0] = load8, table[1] = store8;
    for (int i = 0; i < LOOPS; i++) OPAQUE(table)[i % 2](object + 64);
}

static void copies(char *object) {
    for (int i = 1; i < LOOPS; i++) {
        memset(OPAQUE(object), i, OPAQUE(i * 20));
        memcpy(OPAQUE(object) + 500, object, OPAQUE(i * 20));
        memmove(OPAQUE(object) + 3, object, OPAQUE(i * 20));
        CHECK(memcmp(OPAQUE(object) + 3, object + 500, OPAQUE(i * 20)) == 0);
    }
}

CALL(do_seek, CHECK(lseek(zero_file, 0, SEEK_SET) == 0 && getppid() > 0); object[i] += 1)

typedef struct {
    const char *label;
    void (*run)(char *object);
    const char *feature;
} Case;

static const Case cases[] = {
#define C(name) {#name, name, NULL}
    C(load8), C(load4), C(load2), C(load1), C(load_extend), C(store8), C(store4), C(store2), C(store1), C(store_immediate),
    C(add), C(inc), C(compare), C(shift), C(not_neg), C(multiply), C(setcc), C(cmov), C(xadd), C(xchg), C(lock_add), C(cmpxchg),
    C(cmpxchg8b), C(cmpxchg16b), C(push_memory), C(pop_memory), C(run_stack), C(push_own_memory), C(enter_leave), C(index_scale),
    C(negative_index), C(bit_test), C(bit_test_negative), C(page_crossing), C(movs), C(lods_stos_scas), C(cmps), C(rep_movsb),
    C(rep_movsq), C(rep_movsb_backward), C(rep_stosq), C(rep_stosb), C(repne_scasb), C(repe_cmpsb), C(rep_lodsb), C(xlat),
    C(sse), C(sse_operand), C(insert_extract), C(convert), C(x87), C(no_access), C(jump_memory), C(call_memory),
    C(run_short_load), C(run_short_store), C(run_short_inc), C(run_short_lock), C(run_short_push), C(run_short_pop), C(run_short_jump),
    C(run_short_flags), C(run_into_window), C(run_into_both), C(run_jump_table), C(run_loop_short), C(virtual_calls), C(copies),
    C(do_seek), C(do_read), C(do_pread), C(do_readv), C(do_iovec), C(do_write), C(do_writev), C(do_path), C(do_failed_read), C(lock_inc),
    {"avx32", avx32, "avx"}, {"avx_broadcast", avx_broadcast, "avx"}, {"gather", gather, "avx2"},
    {"gather_masked", gather_masked, "avx2"}, {"avx512", avx512, "avx512f"}, {"masked512", masked512, "avx512f"},
};
enum { CASES = sizeof cases / sizeof *cases, SIZE = 8448, PAGE = 4096 };

static int supported(const char *feature) {
    return !feature || (strcmp(feature, "avx") == 0 && __builtin_cpu_supports("avx")) ||
           (strcmp(feature, "avx2") == 0 && __builtin_cpu_supports("avx2")) ||
           (strcmp(feature, "avx512f") == 0 && __builtin_cpu_supports("avx512f"));
}

static char *objects[THREADS][CASES];
static uint64_t *handled[THREADS];
static uint64_t checksums[THREADS][CASES];
static pthread_t threads[THREADS];
static char stacks[THREADS][64 << 10];
static _Thread_local uint64_t *own_handled;
static unsigned waiting;
static volatile int finished;

static void handler(int signal) {
    (void)signal;
    __asm__ volatile("inc qword ptr [%0]" ::"r"(own_handled) : "memory", "cc");
}

// All threads leave the barrier number `round` at once.
static void meet(unsigned round) {
    __atomic_add_fetch(&waiting, 1, __ATOMIC_SEQ_CST);
    for (unsigned spins = 0; __atomic_load_n(&waiting, __ATOMIC_SEQ_CST) < THREADS * (round + 1); spins++)
        if (spins % 100 == 99) sched_yield();
}

static uint64_t checksum(const char *bytes, unsigned length) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < length; i += 8) sum = sum * 31 + *OPAQUE((const uint64_t *)(bytes + i));
    return sum;
}

static void *run(void *argument) {
    long thread = (long)argument;
    own_handled = handled[thread];
    // Some cases have their stack in the object: a frame there would be counted.
    stack_t stack = {.ss_sp = stacks[thread], .ss_size = sizeof stacks[thread]};
    CHECK(sigaltstack(&stack, NULL) == 0);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    CHECK(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
    for (unsigned i = 0; i < CASES; i++) {
        meet(i);
        if (!objects[thread][i]) continue;
        cases[i].run(objects[thread][i]);
        checksums[thread][i] = checksum(objects[thread][i], 640) + checksum(objects[thread][i] + PAGE - 64, 128);
    }
    meet(CASES);
    CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    meet(CASES + 1);
    return NULL;
}

static void *send_signals(void *unused) {
    while (!finished) {
        for (int i = 0; i < THREADS && !finished; i++) CHECK(pthread_kill(threads[i], SIGUSR1) == 0);
        usleep(300);
    }
    return unused;
}

int main(int count, char **arguments) {
    prepare_files();
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART | SA_ONSTACK};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    for (long t = 0; t < THREADS; t++) {
        CHECK((handled[t] = calloc(1, 64)));
        for (unsigned i = 0; i < CASES; i++)
            if (supported(cases[i].feature)) CHECK((objects[t][i] = calloc(1, SIZE)));
    }
    for (long t = 0; t < THREADS; t++) CHECK(pthread_create(&threads[t], NULL, run, (void *)t) == 0);
    pthread_t sender;
    int signals = count < 2 || strcmp(arguments[1], "quiet") != 0;
    if (signals) CHECK(pthread_create(&sender, NULL, send_signals, NULL) == 0);
    while (__atomic_load_n(&waiting, __ATOMIC_SEQ_CST) < THREADS * CASES) usleep(1000);
    finished = 1;
    if (signals) CHECK(pthread_join(sender, NULL) == 0);
    for (int t = 0; t < THREADS; t++) CHECK(pthread_join(threads[t], NULL) == 0);
    for (unsigned i = 0; i < CASES; i++)
        for (int t = 0; t < THREADS; t++) {
            if (!objects[t][i]) continue;
            // Some cases store addresses of code: the same ones in each thread.
            if (checksums[t][i] != checksums[0][i]) printf("%s differs in thread %d\n", cases[i].label, t);
            printf("case %s %d %lu\n", cases[i].label, t, (unsigned long)objects[t][i]);
        }
    for (int t = 0; t < THREADS; t++) printf("handled %d %lu %lu\n", t, (unsigned long)handled[t], (unsigned long)*OPAQUE(handled[t]));
    return 0;
}
