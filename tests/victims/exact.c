//! flags: -pthread -masm=intel
//! helper
// Accesses written in assembly, each with a known count. Every case has an object of its own, which nothing else
// touches; one JSON line an object tells what must have happened to it:
//   {"label","address","size","threads","reads","writes","read_bytes","write_bytes",
//    "kernel_reads","kernel_writes","accesses":[[offset,length,reads,writes],...]}
// Objects come from calloc: their zeroes are known contents, and clearing them is not an access.
// `exact` runs all cases, `exact NAME...` those whose label begins with one of the names.
#include "exact.h"
#include <pthread.h>

typedef struct {
    unsigned offset, length, reads, writes, kernel; // kernel: by a system call
} Access;

typedef struct {
    const char *label;
    unsigned size;
    void (*run)(char *object);
    Access accesses[8]; // up to the first of length 0
    const char *needs;  // a feature of the CPU, or NULL
    unsigned alignment;
    unsigned threads;
} Case;

static void two_threads(char *object) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, lock_inc_loop, object) == 0);
    for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

static const Case cases[] = {
#define L LOOPS
#define K 1
    // label, size, function, {{offset, length, reads, writes, kernel}, ...}, feature, alignment, threads
    {"load8", 64, load8, {{8, 8, L, 0}}},
    {"load4", 64, load4, {{4, 4, L, 0}}},
    {"load2", 64, load2, {{6, 2, L, 0}}},
    {"load1", 64, load1, {{3, 1, L, 0}}},
    {"load_extend", 64, load_extend, {{0, 1, 2 * L, 0}, {2, 2, L, 0}, {4, 4, L, 0}}},
    {"store8", 64, store8, {{8, 8, 0, L}}},
    {"store4", 64, store4, {{4, 4, 0, L}}},
    {"store2", 64, store2, {{6, 2, 0, L}}},
    {"store1", 64, store1, {{3, 1, 0, L}}},
    {"store_immediate", 64, store_immediate, {{0, 8, 0, L}, {8, 4, 0, L}, {12, 2, 0, L}, {14, 1, 0, L}}},
    {"add", 64, add, {{0, 8, L, L}}},
    {"inc", 64, inc, {{8, 4, L, L}}},
    {"compare", 64, compare, {{0, 8, L, 0}, {8, 1, L, 0}}},
    {"shift", 64, shift, {{0, 8, 2 * L, 2 * L}}},
    {"not_neg", 64, not_neg, {{0, 8, L, L}, {8, 1, L, L}}},
    {"multiply", 64, multiply, {{0, 8, 2 * L, 0}, {8, 4, L, 0}}},
    {"setcc", 64, setcc, {{5, 1, 0, L}}},
    {"cmov", 64, cmov, {{0, 8, 2 * L, 0}}},
    {"xadd", 64, xadd, {{0, 8, L, L}}},
    {"xchg", 64, xchg, {{0, 8, L, L}, {8, 1, L, L}}},
    {"lock_add", 64, lock_add, {{0, 4, L, L}}},
    {"cmpxchg", 64, cmpxchg, {{0, 8, L, L}}},
    {"cmpxchg8b", 64, cmpxchg8b, {{8, 8, L, L}}},
    {"cmpxchg16b", 64, cmpxchg16b, {{16, 16, L, L}}},
    {"push_memory", 64, push_memory, {{8, 8, L, 0}}},
    {"pop_memory", 64, pop_memory, {{8, 8, 0, L}}},
    {"stack", 4096, stack, {{4088, 8, L, L}, {4080, 8, L, L}, {4072, 8, L, L}}},
    {"push_own_memory", 4096, push_own_memory, {{4088, 8, 0, L}, {0, 8, L, 0}, {8, 8, 0, L}, {4088, 8, L, 0}}},
    {"enter_leave", 4096, enter_leave, {{4088, 8, L, L}}},
    {"jump_memory", 64, jump_memory, {{16, 8, L, 1}}},
    {"call_memory", 64, call_memory, {{24, 8, L, 1}}},
    {"index_scale", 512, index_scale, {{16 + 8 * 3, 8, L, 0}, {16 + 4 * 7, 4, 0, L}, {16 + 2 * 9, 2, 0, L}}},
    {"negative_index", 512, negative_index, {{256, 8, L, 0}}},
    {"address_size", 64, lea_only, {}},
    {"bit_test", 512, bit_test, {{8 * 5, 8, L, 0}, {8 * 20, 8, L, L}, {4 * 7, 4, L, L}}},
    {"bit_test_negative", 512, bit_test_negative, {{256 - 8, 8, L, 0}}},
    {"page_crossing", 12288, page_crossing, {{4092, 8, L, 0}, {8190, 4, 0, L}, {4090, 16, L, L}}, NULL, 4096},
    {"movs", 64, movs, {{0, 8, L, 0}, {32, 8, 0, L}, {8, 1, L, 0}, {40, 1, 0, L}}},
    {"lods_stos_scas", 64, lods_stos_scas, {{0, 8, L, 0}, {8, 4, 0, L}, {16, 1, L, 0}}},
    {"cmps", 64, cmps, {{0, 8, L, 0}, {32, 8, L, 0}}},
    {"rep_movsb", 512, rep_movsb, {{0, 200, L, 0}, {256, 200, 0, L}}},
    {"rep_movsq", 512, rep_movsq, {{8, 80, L, 0}, {256, 80, 0, L}}},
    {"rep_movsb_backward", 512, rep_movsb_backward, {{0, 50, L, 0}, {100, 50, 0, L}}},
    {"rep_stosq", 512, rep_stosq, {{16, 160, 0, L}}},
    {"rep_stosb", 512, rep_stosb, {{17, 33, 0, L}}},
    {"rep_zero", 64, rep_zero, {}},
    {"repne_scasb", 512, repne_scasb, {{0, 101, L, 0}, {100, 1, 0, 1}}},
    {"repe_cmpsb", 512, repe_cmpsb, {{0, 61, L, 0}, {256, 61, L, 0}, {60, 1, 0, 1}}},
    {"rep_lodsb", 512, rep_lodsb, {{5, 40, L, 0}}},
    {"rep_movsb_pages", 20480, rep_movsb_pages, {{100, 9000, L, 0}, {10000, 9000, 0, L}}, NULL, 4096},
    {"xlat", 512, xlat, {{77, 1, L, 0}}},
    {"sse", 64, sse, {{0, 16, L, L}, {16, 8, L, L}, {24, 4, L, L}, {32, 16, 0, L}}},
    {"sse_operand", 64, sse_operand, {{0, 16, L, 0}, {16, 8, L, 0}, {24, 4, L, 0}}},
    {"insert_extract", 64, insert_extract, {{0, 1, L, L}, {2, 2, L, L}, {4, 4, L, L}, {8, 8, L, L}}},
    {"convert", 64, convert, {{0, 8, L, 0}, {8, 4, L, 0}}},
    {"x87", 64, x87, {{0, 10, L, L}, {16, 8, L, L}, {24, 4, L, L}, {32, 8, L, L}, {40, 2, L, L}}},
    {"movbe", 64, movbe, {{0, 8, L, L}}, "movbe"},
    {"no_access", 64, no_access, {}},
    {"avx32", 128, avx32, {{0, 32, L, L}, {64, 32, 0, L}}, "avx"},
    {"avx_broadcast", 64, avx_broadcast, {{4, 4, L, 0}, {8, 8, L, 0}, {16, 16, L, 0}}, "avx"},
    {"gather", 512, gather, {{0, 4, L, 0}, {40, 4, L, 0}, {80, 4, L, 0}, {120, 4, L, 0}}, "avx2"},
    {"gather_masked", 512, gather_masked, {{0, 4, L, 0}, {80, 4, L, 0}}, "avx2"},
    {"avx512", 256, avx512, {{0, 64, L, L}}, "avx512f"},
    {"read", 512, do_read, {{8, 100, 0, L, K}}},
    {"short_read", 512, do_short_read, {{8, 5, 0, L, K}}},
    {"pread", 512, do_pread, {{0, 60, 0, L, K}}},
    {"readv", 512, do_readv, {{0, 10, 0, L, K}, {100, 20, 0, L, K}}},
    {"readv_short", 512, do_readv_short, {{0, 10, 0, L, K}, {100, 5, 0, L, K}}},
    {"iovec", 64, do_iovec, {{0, 16, L, 0, K}, {0, 8, 0, L}, {8, 8, 0, L}}},
    {"write", 512, do_write, {{16, 70, L, 0, K}}},
    {"writev", 512, do_writev, {{0, 30, L, 0, K}, {200, 40, L, 0, K}}},
    {"recvmsg", 512, do_recvmsg, {{0, 16, 0, L, K}, {256, 8, 0, L, K}}},
    {"path", 64, do_path, {{0, 8, 0, 1}, {8, 4, 0, 1}, {0, 10, L, 0, K}}},
    {"failed_read", 64, do_failed_read, {}},
    {"pipe", 64, do_pipe, {{8, 8, 0, L, K}}},
    {"lock_inc", 64, lock_inc, {{0, 8, THREAD_LOOPS, THREAD_LOOPS}}},
    {"threads", 64, two_threads, {{0, 8, 2 * THREAD_LOOPS, 2 * THREAD_LOOPS}}, NULL, 0, 2},
};

static int supported(const char *feature) {
    if (!feature) return 1;
    if (strcmp(feature, "avx") == 0) return __builtin_cpu_supports("avx");
    if (strcmp(feature, "avx2") == 0) return __builtin_cpu_supports("avx2");
    if (strcmp(feature, "avx512f") == 0) return __builtin_cpu_supports("avx512f");
    return strcmp(feature, "movbe") == 0 && has_movbe();
}

static int wanted(const Case *c, int count, char **names) {
    int named = count < 2;
    for (int i = 1; i < count; i++) named |= strncmp(c->label, names[i], strlen(names[i])) == 0;
    return named && supported(c->needs);
}

static void print(const Case *c, char *object) {
    unsigned reads = 0, writes = 0, read_bytes = 0, write_bytes = 0, count = 0;
    unsigned kernel_reads = 0, kernel_writes = 0;
    for (; count < 8 && c->accesses[count].length; count++) {
        const Access *a = &c->accesses[count];
        reads += a->reads, writes += a->writes;
        if (a->kernel) kernel_reads += a->reads, kernel_writes += a->writes;
        read_bytes += a->reads * a->length, write_bytes += a->writes * a->length;
    }
    printf("{\"label\":\"%s\",\"address\":%lu,\"size\":%u,\"threads\":%u,\"reads\":%u,\"writes\":%u,"
           "\"read_bytes\":%u,\"write_bytes\":%u,\"kernel_reads\":%u,\"kernel_writes\":%u,\"accesses\":[", c->label, (unsigned long)object, c->size,
           c->threads ? c->threads : 1, reads, writes, read_bytes, write_bytes, kernel_reads,
           kernel_writes);
    for (unsigned i = 0; i < count; i++) {
        const Access *a = &c->accesses[i];
        printf("%s[%u,%u,%u,%u]", i ? "," : "", a->offset, a->length, a->reads, a->writes);
    }
    printf("]}\n");
}

enum { CASES = sizeof cases / sizeof *cases };
static char *objects[CASES];

int main(int count, char **names) {
    prepare_files();
    for (int i = 0; i < CASES; i++) {
        if (!wanted(&cases[i], count, names)) continue;
        objects[i] = cases[i].alignment ? aligned_alloc(cases[i].alignment, cases[i].size) : calloc(1, cases[i].size);
        CHECK(objects[i]);
        cases[i].run(objects[i]);
    }
    // Objects are described only now: none was printed, and none freed, before all cases had run.
    for (int i = 0; i < CASES; i++)
        if (objects[i]) print(&cases[i], objects[i]);
    return 0;
}
