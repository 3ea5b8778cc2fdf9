/* Control flow that code around accesses could upset: longjmp, variable arguments, computed goto, structures by value,
 * an indirect function, a naked function, a constructor before all others, thread-local variables, inline assembly. */
#include "mock.h"
#include <setjmp.h>
#include <stdarg.h>

struct big {
    long a[9];
};

static int early;
__attribute__((constructor(101))) static void before_main(void) {
    volatile int *p = malloc(sizeof *p);
    *p = 3;
    early = *p;
    free((void *)p);
}

static int forty(void) {
    return 40;
}
/* Runs while the program is being relocated. */
static int (*resolve(void))(void) {
    static int (*table[1])(void);
    int (**volatile at)(void) = table;
    at[0] = forty;
    return at[0];
}
int indirect(void) __attribute__((ifunc("resolve")));

__attribute__((naked)) long naked(void) {
    __asm__("movl $7, %eax\n\tret");
}

static _Thread_local long local = 5;

static jmp_buf target;
__attribute__((noinline)) static void jump(volatile long *p) {
    *p += 1;
    longjmp(target, (int)*p);
}

__attribute__((noinline)) static long sum(int count, ...) {
    va_list list;
    long total = 0;
    va_start(list, count);
    for (int i = 0; i < count; i++)
        total += *va_arg(list, long *);
    va_end(list);
    return total;
}

__attribute__((noinline)) static long by_value(struct big big, int at) {
    big.a[0] += 1;
    return big.a[at] + big.a[0];
}
__attribute__((noinline)) static struct big returned(const struct big *from) {
    struct big big = *from;
    big.a[1] = 77;
    return big;
}

__attribute__((noinline)) static long interpret(const unsigned char *code, long *stack) {
    static const void *const labels[] = {&&push, &&add, &&end};
    goto *labels[*code];
push:
    *stack++ = code[1];
    code += 2;
    goto *labels[*code];
add:
    stack--;
    stack[-1] += stack[0];
    code++;
    goto *labels[*code];
end:
    return stack[-1];
}

int main(void) {
    EXPECT(early == 3);
    EXPECT(indirect() == 40);
    EXPECT(naked() == 7);
    volatile long *p = mock_heap(8);
    int code = setjmp(target);
    if (code < 4)
        jump(p);
    EXPECT(code == 4 && *p == 4);
    EXPECT_HEAT((void *)p, 8, 9, 72, 4, 32);
    long *q = mock_heap(8);
    *q = 10;
    long here = 100;
    EXPECT(sum(3, q, &here, q) == 120);
    struct big stack = {{1, 2, 3, 4, 5, 6, 7, 8, 9}};
    EXPECT(by_value(stack, 8) == 11);
    struct big *heap = mock_heap(sizeof *heap);
    *heap = stack;
    EXPECT(returned(heap).a[1] == 77);
    struct big copy = *heap;
    /* Else the object itself would be the argument, which the caller copies by code that is not instrumented. */
    __asm__ volatile("" : "+m"(copy));
    EXPECT(by_value(copy, 8) == 11);
    unsigned char *program = mock_heap(16);
    const unsigned char source[] = {0, 20, 0, 22, 1, 2};
    for (unsigned i = 0; i < sizeof source; i++)
        program[i] = source[i];
    EXPECT(interpret(program, mock_heap(64)) == 42);
    long *volatile address = &local;
    *address += 1;
    EXPECT(local == 6);
    long memory = 1;
    __asm__ volatile("addq $4, %0" : "+m"(memory));
    EXPECT(memory == 5);
    return failures != 0;
}
