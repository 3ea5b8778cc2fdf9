// Code made at run time, in mapped memory and in the heap itself, makes system calls and touches the heap; it is rewritten too.
#include "victim.h"
#include <sys/mman.h>
#include <sys/syscall.h>

// mov eax, NUMBER; syscall; ret
static void put_syscall(unsigned char *code, uint32_t number) {
    static const unsigned char tail[] = {0x0f, 0x05, 0xc3};
    code[0] = 0xb8;
    memcpy(code + 1, &number, 4);
    memcpy(code + 5, tail, 3);
}

// add qword [rdi], IMMEDIATE; mov rax, [rdi]; ret
static void put_add(unsigned char *code, unsigned char immediate) {
    const unsigned char bytes[] = {0x48, 0x83, 0x07, immediate, 0x48, 0x8b, 0x07, 0xc3};
    memcpy(code, bytes, sizeof bytes);
}

// movabs rax, [ADDRESS]; movabs [ADDRESS + 8], al; ret: operands with 64-bit addresses
static void put_absolute(unsigned char *code, char *address) {
    char *next = address + 8;
    code[0] = 0x48, code[1] = 0xa1;
    memcpy(code + 2, &address, 8);
    code[10] = 0xa2;
    memcpy(code + 11, &next, 8);
    code[19] = 0xc3;
}

static void exercise(unsigned char *code) {
    uint64_t *cell = calloc(4, sizeof *cell);
    for (int round = 0; round < 5; round++) {
        put_syscall(code, SYS_getpid);
        CHECK(((long (*)(void))code)() == getpid());
        put_syscall(code, SYS_getppid);
        CHECK(((long (*)(void))code)() == getppid());
        put_add(code, 3);
        CHECK(((uint64_t(*)(uint64_t *))code)(cell) == (uint64_t)(8 * round + 3));
        put_add(code, 5);
        CHECK(((uint64_t(*)(uint64_t *))code)(cell) == (uint64_t)(8 * round + 8));
        put_absolute(code, (char *)cell);
        CHECK(((uint64_t(*)(void))code)() == cell[0] && cell[1] == (unsigned char)cell[0]);
        put_syscall(code, SYS_pipe); // the kernel writes two descriptors into the heap
        int *pipes = (int *)&cell[2];
        CHECK(((long (*)(int *))code)(pipes) == 0 && pipes[1] > pipes[0]);
        close(pipes[0]), close(pipes[1]);
    }
    free(cell);
}

int main(void) {
    unsigned char *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mapped != MAP_FAILED);
    exercise(mapped);
    CHECK(munmap(mapped, 4096) == 0);
    say("mapped");
    unsigned char *block;
    CHECK(posix_memalign((void **)&block, 4096, 8192) == 0);
    CHECK(mprotect(block, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
    exercise(block);
    CHECK(mprotect(block, 8192, PROT_READ | PROT_WRITE) == 0);
    free(block);
    say("heap");
    return 0;
}
