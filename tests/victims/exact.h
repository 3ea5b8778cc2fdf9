// The accesses of exact.c, in assembly (Intel syntax). Each function does what its case declares, LOOPS times.
#ifndef EXACT_H
#define EXACT_H
#include "victim.h"
#include <cpuid.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum { LOOPS = 20, THREAD_LOOPS = 3000 };

// A function that runs the instructions LOOPS times; %0 is the object.
#define ACCESS(name, instructions, ...)                                                    \
    static void name(char *object) {                                                       \
        for (int i = 0; i < LOOPS; i++)                                                    \
            __asm__ volatile(instructions ::"r"(object) : "memory", "cc", ##__VA_ARGS__);  \
    }

ACCESS(load8, "mov rax, [%0+8]", "rax")
ACCESS(load4, "mov eax, [%0+4]", "rax")
ACCESS(load2, "mov ax, [%0+6]", "rax")
ACCESS(load1, "mov al, [%0+3]", "rax")
ACCESS(load_extend, "movzx eax, byte ptr [%0]\n movsx rax, byte ptr [%0]\n movzx eax, word ptr [%0+2]\n movsxd rax, dword ptr [%0+4]", "rax")
ACCESS(store8, "mov [%0+8], rax")
ACCESS(store4, "mov [%0+4], eax")
ACCESS(store2, "mov [%0+6], ax")
ACCESS(store1, "mov [%0+3], al")
ACCESS(store_immediate, "mov qword ptr [%0], 5\n mov dword ptr [%0+8], 6\n mov word ptr [%0+12], 7\n mov byte ptr [%0+14], 8")
ACCESS(add, "add [%0], rax")
ACCESS(inc, "inc dword ptr [%0+8]")
ACCESS(compare, "cmp [%0], rax\n test byte ptr [%0+8], 3")
ACCESS(shift, "shl qword ptr [%0], 1\n mov ecx, 3\n ror qword ptr [%0], cl", "rcx")
ACCESS(not_neg, "not qword ptr [%0]\n neg byte ptr [%0+8]")
ACCESS(multiply, "mov eax, 3\n mul qword ptr [%0]\n imul rax, [%0], 7\n imul eax, [%0+8]", "rax", "rdx")
ACCESS(setcc, "cmp eax, eax\n sete [%0+5]")
// A conditional move reads its operand whether it moves or not.
ACCESS(cmov, "cmp eax, eax\n cmove rax, [%0]\n cmp eax, eax\n cmovne rax, [%0]", "rax")
ACCESS(xadd, "mov eax, 1\n lock xadd [%0], rax", "rax")
ACCESS(xchg, "mov eax, 1\n xchg [%0], rax\n xchg [%0+8], al", "rax")
ACCESS(lock_add, "lock add dword ptr [%0], 3")
// The object is zero and is exchanged with zero: each one succeeds.
ACCESS(cmpxchg, "xor eax, eax\n xor ecx, ecx\n lock cmpxchg [%0], rcx", "rax", "rcx")
ACCESS(cmpxchg8b, "xor eax, eax\n xor edx, edx\n xor ebx, ebx\n xor ecx, ecx\n lock cmpxchg8b [%0+8]", "rax", "rbx", "rcx", "rdx")
ACCESS(cmpxchg16b, "xor eax, eax\n xor edx, edx\n xor ebx, ebx\n xor ecx, ecx\n lock cmpxchg16b [%0+16]", "rax", "rbx", "rcx", "rdx")
ACCESS(push_memory, "lea rsp, [rsp-128]\n push qword ptr [%0+8]\n pop rax\n lea rsp, [rsp+128]", "rax")
ACCESS(pop_memory, "lea rsp, [rsp-128]\n push rax\n pop qword ptr [%0+8]\n lea rsp, [rsp+128]")
// The stack pointer itself points into the object.
ACCESS(stack, "mov rbx, rsp\n lea rsp, [%0+4096]\n push rax\n push 5\n call 1f\n jmp 2f\n 1: ret\n 2: pop rax\n pop rax\n mov rsp, rbx", "rax", "rbx")
ACCESS(push_own_memory, "mov rbx, rsp\n lea rsp, [%0+4096]\n push qword ptr [%0]\n pop qword ptr [%0+8]\n mov rsp, rbx", "rbx")
ACCESS(enter_leave, "mov rbx, rsp\n mov r12, rbp\n lea rsp, [%0+4096]\n enter 16, 0\n leave\n mov rsp, rbx\n mov rbp, r12", "rbx", "r12")
ACCESS(index_scale, "mov ecx, 3\n mov rax, [%0+rcx*8+16]\n mov ecx, 7\n mov [%0+rcx*4+16], eax\n mov ecx, 9\n mov [%0+rcx*2+16], ax", "rax", "rcx")
ACCESS(negative_index, "lea rdx, [%0+512]\n mov rcx, -32\n mov rax, [rdx+rcx*8]", "rax", "rcx", "rdx")
ACCESS(lea_only, "lea rax, [%0+8]\n lea rax, [rax+rax*4]", "rax")
// With a register as bit offset, the address is that of the word that holds the bit.
ACCESS(bit_test, "mov rax, 5*64+3\n bt [%0], rax\n mov rax, 20*64+1\n bts [%0], rax\n mov eax, 7*32\n lock btr [%0], eax", "rax")
ACCESS(bit_test_negative, "lea rdx, [%0+256]\n mov rax, -5\n bt [rdx], rax", "rax", "rdx")
ACCESS(page_crossing, "mov rax, [%0+4092]\n mov [%0+8190], eax\n movups xmm1, [%0+4090]\n movups [%0+4090], xmm1", "rax", "xmm1")
ACCESS(movs, "mov rsi, %0\n lea rdi, [%0+32]\n movsq\n movsb", "rsi", "rdi")
ACCESS(lods_stos_scas, "mov rsi, %0\n lodsq\n lea rdi, [%0+8]\n stosd\n lea rdi, [%0+16]\n scasb", "rax", "rsi", "rdi")
ACCESS(cmps, "mov rsi, %0\n lea rdi, [%0+32]\n cmpsq", "rsi", "rdi")
ACCESS(rep_movsb, "mov rsi, %0\n lea rdi, [%0+256]\n mov ecx, 200\n rep movsb", "rsi", "rdi", "rcx")
ACCESS(rep_movsq, "lea rsi, [%0+8]\n lea rdi, [%0+256]\n mov ecx, 10\n rep movsq", "rsi", "rdi", "rcx")
ACCESS(rep_movsb_backward, "lea rsi, [%0+49]\n lea rdi, [%0+149]\n mov ecx, 50\n std\n rep movsb\n cld", "rsi", "rdi", "rcx")
ACCESS(rep_stosq, "lea rdi, [%0+16]\n mov ecx, 20\n rep stosq", "rdi", "rcx")
ACCESS(rep_stosb, "lea rdi, [%0+17]\n mov ecx, 33\n rep stosb", "rdi", "rcx")
ACCESS(rep_zero, "mov rsi, %0\n mov rdi, %0\n xor ecx, ecx\n rep movsb\n rep stosq\n repne scasb", "rsi", "rdi", "rcx")
ACCESS(rep_lodsb, "lea rsi, [%0+5]\n mov ecx, 40\n rep lodsb", "rax", "rsi", "rcx")
ACCESS(rep_movsb_pages, "lea rsi, [%0+100]\n lea rdi, [%0+10000]\n mov ecx, 9000\n rep movsb", "rsi", "rdi", "rcx")
ACCESS(xlat, "mov rbx, %0\n mov eax, 77\n xlatb", "rax", "rbx")
ACCESS(sse, "movaps xmm1, [%0]\n movaps [%0], xmm1\n movq xmm1, [%0+16]\n movq [%0+16], xmm1\n movss xmm1, [%0+24]\n movss [%0+24], xmm1\n movntdq [%0+32], xmm1", "xmm1")
ACCESS(sse_operand, "pxor xmm1, xmm1\n paddd xmm1, [%0]\n addsd xmm1, [%0+16]\n ucomiss xmm1, [%0+24]", "xmm1")
ACCESS(insert_extract, "pinsrb xmm1, [%0], 3\n pextrb [%0], xmm1, 2\n pinsrw xmm1, [%0+2], 3\n pextrw [%0+2], xmm1, 2\n pinsrd xmm1, [%0+4], 1\n pextrd [%0+4], xmm1, 2\n movhps xmm1, [%0+8]\n movhps [%0+8], xmm1", "xmm1")
ACCESS(convert, "cvtsi2sd xmm1, qword ptr [%0]\n cvtss2sd xmm1, dword ptr [%0+8]", "xmm1")
ACCESS(x87, "fld tbyte ptr [%0]\n fstp tbyte ptr [%0]\n fld qword ptr [%0+16]\n fstp qword ptr [%0+16]\n fld dword ptr [%0+24]\n fstp dword ptr [%0+24]\n fild qword ptr [%0+32]\n fistp qword ptr [%0+32]\n fnstcw [%0+40]\n fldcw [%0+40]")
ACCESS(movbe, "movbe rax, [%0]\n movbe [%0], rax", "rax")
ACCESS(no_access, "nop dword ptr [%0+8]\n prefetcht0 [%0]\n prefetchnta [%0+16]\n lea rax, [%0]", "rax")
ACCESS(avx32, "vmovups ymm1, [%0]\n vmovups [%0], ymm1\n vmovups [%0+64], ymm1\n vzeroupper", "xmm1")
ACCESS(avx_broadcast, "vbroadcastss ymm1, dword ptr [%0+4]\n vbroadcastsd ymm1, qword ptr [%0+8]\n vbroadcastf128 ymm1, [%0+16]\n vzeroupper", "xmm1")
ACCESS(avx512, "vmovdqu64 zmm1, [%0]\n vmovdqu64 [%0], zmm1\n vzeroupper", "xmm1")

// The index vector is 0, 10, 20, 30 (times 4 bytes). The mask is all ones, or those of lanes 0 and 2.
static const uint32_t gather_index[4] = {0, 10, 20, 30}, gather_all[4] = {~0u, ~0u, ~0u, ~0u}, gather_even[4] = {~0u, 0, ~0u, 0};
#define GATHER(name, mask)                                                                                     \
    static void name(char *object) {                                                                           \
        for (int i = 0; i < LOOPS; i++)                                                                        \
            __asm__ volatile("vmovdqu xmm2, [%1]\n vmovdqu xmm3, [%2]\n vpgatherdd xmm1, [%0+xmm2*4], xmm3"    \
                             ::"r"(object), "r"(gather_index), "r"(mask) : "memory", "xmm1", "xmm2", "xmm3");  \
    }
GATHER(gather, gather_all)
GATHER(gather_masked, gather_even)

// The target's address is stored once, then jumped to through memory.
static void jump_memory(char *object) {
    __asm__ volatile("lea rax, [rip+1f]\n mov [%0+16], rax\n mov ecx, 20\n"
                     "2: jmp qword ptr [%0+16]\n ud2\n 1: dec ecx\n jnz 2b" ::"r"(object) : "rax", "rcx", "memory", "cc");
}
static void call_memory(char *object) {
    __asm__ volatile("lea rsp, [rsp-128]\n lea rax, [rip+1f]\n mov [%0+24], rax\n mov ecx, 20\n"
                     "2: call qword ptr [%0+24]\n dec ecx\n jnz 2b\n jmp 3f\n 1: ret\n 3: lea rsp, [rsp+128]"
                     ::"r"(object) : "rax", "rcx", "memory", "cc");
}
static void repne_scasb(char *object) {
    __asm__ volatile("mov byte ptr [%0+100], 7" ::"r"(object) : "memory");
    for (int i = 0; i < LOOPS; i++)
        __asm__ volatile("mov rdi, %0\n mov ecx, 400\n mov al, 7\n repne scasb" ::"r"(object) : "rax", "rdi", "rcx", "memory", "cc");
}
static void repe_cmpsb(char *object) {
    __asm__ volatile("mov byte ptr [%0+60], 7" ::"r"(object) : "memory");
    for (int i = 0; i < LOOPS; i++)
        __asm__ volatile("mov rsi, %0\n lea rdi, [%0+256]\n mov ecx, 200\n repe cmpsb" ::"r"(object) : "rsi", "rdi", "rcx", "memory", "cc");
}
static void *lock_inc_loop(void *object) {
    for (int i = 0; i < THREAD_LOOPS; i++) __asm__ volatile("lock inc qword ptr [%0]" ::"r"(object) : "memory", "cc");
    return NULL;
}
static void lock_inc(char *object) { lock_inc_loop(object); }

static inline int has_movbe(void) {
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_MOVBE);
}

// The kernel's accesses. What else the calls are given lies in static memory.
static int zero_file, pair[2], data_file;
static char source[1000];
#define CALL(name, ...)                                   \
    static void name(char *object) {                      \
        for (int i = 0; i < LOOPS; i++) { __VA_ARGS__; }  \
    }

static void prepare_files(void) {
    zero_file = open("/dev/zero", O_RDWR);
    CHECK(zero_file >= 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    data_file = open("/proc/self/exe", O_RDONLY);
    CHECK(data_file >= 0);
}

CALL(do_read, CHECK(read(zero_file, object + 8, 100) == 100))
CALL(do_short_read, CHECK(write(pair[0], source, 5) == 5 && read(pair[1], object + 8, 400) == 5))
CALL(do_pread, CHECK(pread(data_file, object, 60, 100) == 60))
CALL(do_readv, struct iovec v[2] = {{object, 10}, {object + 100, 20}}; CHECK(readv(zero_file, v, 2) == 30))
CALL(do_readv_short, struct iovec v[2] = {{object, 10}, {object + 100, 20}};
     CHECK(write(pair[0], source, 15) == 15 && readv(pair[1], v, 2) == 15))
// The vector itself is in the object: the program writes it (two stores of 8 bytes), the kernel reads it.
CALL(do_iovec, __asm__ volatile("mov [%0], %1\n mov qword ptr [%0+8], 50" ::"r"(object), "r"(source) : "memory");
     CHECK(readv(zero_file, (struct iovec *)object, 1) == 50))
CALL(do_write, CHECK(write(zero_file, object + 16, 70) == 70))
CALL(do_writev, struct iovec v[2] = {{object, 30}, {object + 200, 40}}; CHECK(writev(zero_file, v, 2) == 70))
CALL(do_recvmsg, struct iovec v[2] = {{object, 16}, {object + 256, 30}};
     struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};
     CHECK(send(pair[0], source, 24, 0) == 24 && recvmsg(pair[1], &m, 0) == 24))
// "/dev/null" and its final zero
static void do_path(char *object) {
    __asm__ volatile("movabs rax, 0x6c756e2f7665642f\n mov [%0], rax\n mov dword ptr [%0+8], 0x6c" ::"r"(object) : "rax", "memory");
    for (int i = 0; i < LOOPS; i++) {
        int fd = syscall(SYS_openat, AT_FDCWD, object, O_RDONLY, 0);
        CHECK(fd >= 0 && close(fd) == 0);
    }
}
CALL(do_failed_read, CHECK(read(-1, object, 50) == -1 && errno == EBADF))
CALL(do_pipe, int *fds = (int *)(object + 8); CHECK(pipe(fds) == 0);
     for (int fd = data_file + 1; fd < data_file + 3; fd++) CHECK(close(fd) == 0))
#endif
