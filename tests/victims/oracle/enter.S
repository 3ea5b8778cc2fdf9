# Loads the whole machine state, runs a generated program on it, and saves the state that it leaves.
# The program ends with a jump to oracle_leave, with rsp where it was at its start.
.intel_syntax noprefix
.text
.globl oracle_enter, oracle_leave
oracle_enter:
    push rbx
    push rbp
    push r12
    push r13
    push r14
    push r15
    mov [rip + harness_rsp], rsp
    mov eax, dword ptr [rip + oracle_components]
    xor edx, edx
    xrstor64 [rip + oracle_vectors]
    push qword ptr [rip + oracle_state + 128]
    popfq
    mov rax, [rip + oracle_state + 0]
    mov rcx, [rip + oracle_state + 8]
    mov rdx, [rip + oracle_state + 16]
    mov rbx, [rip + oracle_state + 24]
    mov rsp, [rip + oracle_state + 32]
    mov rbp, [rip + oracle_state + 40]
    mov rsi, [rip + oracle_state + 48]
    mov rdi, [rip + oracle_state + 56]
    mov r8,  [rip + oracle_state + 64]
    mov r9,  [rip + oracle_state + 72]
    mov r10, [rip + oracle_state + 80]
    mov r11, [rip + oracle_state + 88]
    mov r12, [rip + oracle_state + 96]
    mov r13, [rip + oracle_state + 104]
    mov r14, [rip + oracle_state + 112]
    mov r15, [rip + oracle_state + 120]
    jmp [rip + oracle_entry]

oracle_leave:
    mov [rip + oracle_state + 0], rax
    mov [rip + oracle_state + 8], rcx
    mov [rip + oracle_state + 16], rdx
    mov [rip + oracle_state + 24], rbx
    mov [rip + oracle_state + 32], rsp
    mov [rip + oracle_state + 40], rbp
    mov [rip + oracle_state + 48], rsi
    mov [rip + oracle_state + 56], rdi
    mov [rip + oracle_state + 64], r8
    mov [rip + oracle_state + 72], r9
    mov [rip + oracle_state + 80], r10
    mov [rip + oracle_state + 88], r11
    mov [rip + oracle_state + 96], r12
    mov [rip + oracle_state + 104], r13
    mov [rip + oracle_state + 112], r14
    mov [rip + oracle_state + 120], r15
    mov rsp, [rip + harness_rsp]
    pushfq
    pop qword ptr [rip + oracle_state + 128]
    cld
    mov eax, dword ptr [rip + oracle_components]
    xor edx, edx
    xsave64 [rip + oracle_vectors]
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbp
    pop rbx
    ret

.lcomm harness_rsp, 8
.section .note.GNU-stack,"",@progbits
