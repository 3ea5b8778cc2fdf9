/* Accesses whose numbers and sizes are known, at every level of optimisation: most are volatile. */
#include "mock.h"
#include <stdatomic.h>
#include <string.h>

typedef int v4 __attribute__((vector_size(16)));
typedef int v8 __attribute__((vector_size(32)));
typedef float v3 __attribute__((ext_vector_type(3)));
struct forty { long a[5]; };
struct bits { unsigned low : 3, high : 7; };

#define SCALAR(type)                                                                                   \
    do {                                                                                               \
        volatile type *p = mock_heap(sizeof(type));                                                    \
        *p = (type)7;                                                                                  \
        for (int i = 0; i < 5; i++)                                                                    \
            EXPECT(*p == (type)7);                                                                     \
        size_t size = __builtin_types_compatible_p(type, long double) ? 10 : sizeof(type);             \
        expect_heat(#type, (void *)p, sizeof(type), 5, 5 * size, 1, size);                             \
    } while (0)

static void scalars(void) {
    SCALAR(char);
    SCALAR(_Bool);
    SCALAR(short);
    SCALAR(int);
    SCALAR(long);
    SCALAR(float);
    SCALAR(double);
    SCALAR(long double);
    volatile __int128 *wide = mock_heap(16);
    *wide = 1;
    EXPECT(*wide == 1);
    EXPECT_HEAT((void *)wide, 16, 2, 16, 2, 16);
}

static void vectors(void) {
    volatile v4 *four = mock_heap(16);
    *four = (v4){1, 2, 3, 4};
    v4 got = *four;
    EXPECT(got[3] == 4);
    EXPECT_HEAT((void *)four, 16, 1, 16, 1, 16);
    volatile v8 *eight = mock_heap(32);
    *eight = (v8){1, 2, 3, 4, 5, 6, 7, 8};
    v8 more = *eight;
    EXPECT(more[7] == 8);
#ifdef __AVX__
    EXPECT_HEAT((void *)eight, 32, 1, 32, 1, 32);
#else
    EXPECT_HEAT((void *)eight, 16, 1, 16, 1, 16);
    EXPECT_HEAT((char *)eight + 16, 16, 1, 16, 1, 16);
#endif
}

/* Kept in a short. */
static void bitfields(void) {
    volatile struct bits *p = mock_heap(sizeof *p);
    p->low = 5;
    p->high = 99;
    EXPECT(p->low == 5 && p->high == 99);
    EXPECT_HEAT((void *)p, 4, 4, 8, 2, 4);
}

/* An access that begins at the end of a granule counts there, whole. */
static void unaligned(void) {
    char *p = mock_heap(32);
    volatile long *odd = (volatile long *)(p + 13);
    *odd = 0x0102030405060708;
    EXPECT(*odd == 0x0102030405060708);
    EXPECT_HEAT(p, 16, 1, 8, 1, 8);
    EXPECT_HEAT(p + 16, 16, 0, 0, 0, 0);
}

__attribute__((noinline)) static void copy(struct forty *to, const struct forty *from) {
    *to = *from;
}
__attribute__((noinline)) static void clear(void *p, size_t n) {
    memset(p, 0, n);
}
__attribute__((noinline)) static void shift(char *p, size_t n) {
    memmove(p + 1, p, n);
}
__attribute__((noinline)) static void out(void *to, const void *from, size_t n) {
    memcpy(to, from, n);
}

static void ranges(void) {
    struct forty *a = mock_heap(40), *b = mock_heap(40), local = {{1, 2, 3, 4, 5}};
    out(a, &local, sizeof local);
    copy(b, a);
    local.a[4] = 0;
    out(&local, b, sizeof local);
    EXPECT(local.a[4] == 5);
    EXPECT_HEAT(a, 40, 1, 40, 1, 40);
    EXPECT_HEAT(b, 40, 1, 40, 1, 40);
    shift((char *)a, 39);
    EXPECT_HEAT(a, 40, 2, 79, 2, 79);
    clear(b, 40);
    clear(b, 0);
    EXPECT_HEAT(b, 40, 1, 40, 2, 80);
    EXPECT(((struct forty *)mock_view(b))->a[2] == 0);
}

static void atomics(void) {
    _Atomic long *p = mock_heap(8);
    atomic_fetch_add(p, 3);
    EXPECT_HEAT(p, 8, 1, 8, 1, 8);
    EXPECT(atomic_exchange(p, 10) == 3);
    long expected = 10;
    EXPECT(atomic_compare_exchange_strong(p, &expected, 11));
    EXPECT(!atomic_compare_exchange_strong(p, &expected, 12));
    EXPECT_HEAT(p, 8, 4, 32, 4, 32);
    EXPECT(atomic_load(p) == 11);
    EXPECT_HEAT(p, 8, 5, 40, 4, 32);
    atomic_store_explicit(p, 1, memory_order_release);
    EXPECT_HEAT(p, 8, 5, 40, 5, 40);
    /* An XCHG. */
    atomic_store(p, 2);
    EXPECT_HEAT(p, 8, 6, 48, 6, 48);
    _Atomic int *small = mock_heap(4);
    atomic_fetch_add_explicit(small, 6, memory_order_relaxed);
    atomic_fetch_sub(small, 1);
    EXPECT_HEAT(small, 4, 2, 8, 2, 8);
#ifdef __GCC_HAVE_SYNC_COMPARE_AND_SWAP_16
    __int128 *wide = mock_heap(16);
    EXPECT(__sync_bool_compare_and_swap(wide, (__int128)0, (__int128)5));
    EXPECT_HEAT(wide, 16, 1, 16, 1, 16);
#endif
}

struct node {
    struct node *next;
    long value;
    int small;
    char letter;
};

/* Plain accesses through one pointer, which share a check. */
__attribute__((noinline)) static long walk(struct node *node) {
    long sum = 0;
    for (; node; node = node->next) {
        sum += node->value + node->small + node->letter;
        node->letter = 'x';
    }
    return sum;
}

static void lists(void) {
    struct node *nodes[4];
    for (int i = 0; i < 4; i++) {
        nodes[i] = mock_heap(sizeof(struct node));
        *(struct node *)mock_view(nodes[i]) = (struct node){i ? nodes[i - 1] : NULL, i, 2 * i, 'a'};
    }
    EXPECT(walk(nodes[3]) == 18 + 4 * 'a');
    for (int i = 0; i < 4; i++) {
        EXPECT_HEAT(nodes[i], 16, 2, 16, 0, 0);
        EXPECT_HEAT((char *)nodes[i] + 16, 8, 2, 5, 1, 1);
        EXPECT(((struct node *)mock_view(nodes[i]))->letter == 'x');
    }
}

/* Memory that is none of the heap's is left as it is, by the same code. */
static void outside(void) {
    struct node stack[2] = {{stack + 1, 1, 2, 'b'}, {NULL, 3, 4, 'c'}};
    EXPECT(walk(stack) == 10 + 'b' + 'c');
    EXPECT(stack[1].letter == 'x');
    struct forty local = {{1, 2, 3, 4, 5}}, other;
    copy(&other, &local);
    EXPECT(other.a[4] == 5);
}

/* A counter that runs over is told, once. */
static void overflow(void) {
    if (!mock_counts())
        return;
    volatile int *p = mock_heap(4);
    const uint32_t full[4] = {0xffffffff, 0x80000002, 0xffffffff, 0x80000001};
    (void)*p;
    mock_set_cell((void *)p, full);
    (void)*p;
    *p = 1;
    for (int which = 0; which < 4; which++)
        EXPECT(mock_overflows[which] == 1);
    (void)*p;
    *p = 1;
    for (int which = 0; which < 4; which++)
        EXPECT(mock_overflows[which] == 1);
}

int main(void) {
    scalars();
    vectors();
    bitfields();
    unaligned();
    ranges();
    atomics();
    lists();
    outside();
    overflow();
    return failures != 0;
}
