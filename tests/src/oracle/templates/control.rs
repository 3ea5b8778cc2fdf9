//! Templates of jumps, calls, system calls and faults.

/// Jumps and calls.
pub const CONTROL: &[&str] = &[
    "j{cc} {l}",
    "j{cc} {l}",
    "j{cc} {l}",
    "test {r}, {r}; j{cc} {l}",
    "cmp {m}, {r}; j{cc} {l}",
    "test {rounds32}, 1; jz {l}",
    "test {rounds32}, 2; jnz {l}",
    "jmp {l}",
    "jrcxz {u}; {alu} {m}, {r}; {u}:",
    "lea {a64}, [rip + {l}]; jmp {a64}",
    "lea {a64}, [rip + {l}]; mov {m8}, {a64}; jmp {ms}",
    "lea {a64}, [rip + {l}]; push {a64}; ret",
    "mov {a32}, {rounds32}; and {a32}, 1; lea {b64}, [rip + {u}]; jmp qword ptr [{b64} + {a64}*8]; {table2}",
    "mov {a32}, {m4}; and {a32}, 3; lea {b64}, [rip + {u}]; jmp qword ptr [{b64} + {a64}*8]; {table4}",
    "mov {a32}, {rounds32}; and {a32}, 3; lea {b64}, [rip + {u}]; movsxd {a64}, dword ptr [{b64} + {a64}*4]; \
     add {a64}, {b64}; jmp {a64}; {offsets4}",
    "call {s}",
    "call {s}",
    "mov {m4}, {r32}; call {s}",
    "mov {r32}, {m4}; call {s}",
    "lea {a64}, [rip + {s}]; call {a64}",
    "lea {a64}, [rip + {s}]; mov {m8}, {a64}; call {ms}",
    "rcx | mov ecx, {count}; inc ecx; {u}: {lalu} {m}, {r}; loop {u}",
    "rcx | mov ecx, {count}; inc ecx; {u}: add {b32}, {m4}; dec ecx; jnz {u}",
    "rax | .byte 0xeb, 0xff, 0xc0",
    "rax | mov {m1}, {r8}; .byte 0xeb, 0xff, 0xc8",
    "nop word ptr [rax + rax*1 + 0x200]",
    "nop",
    "endbr64",
    ".p2align 4",
];

/// What the pointers and the index become on the way.
pub const POINTERS: &[&str] = &["{mixed}", "{mixed}", "{mixed}", "{reindex}", "{reindex}"];

/// System calls whose results are always the same.
pub const SYSTEM: &[&str] = &[
    "rax rcx r11 | mov eax, 102; syscall",
    "rax rcx r11 | mov eax, 107; syscall",
    "rax rcx r11 rdi rsi rdx | mov eax, 1; mov edi, 100; lea rsi, {P64}; mov edx, {n}; syscall",
    "rax rcx r11 rdi rsi rdx r10 | mov eax, 17; mov edi, 101; lea rsi, {P64}; mov edx, {n}; mov r10d, {n}; syscall",
    "rax rcx r11 rdi rsi rdx | mov eax, 1; mov edi, -1; lea rsi, {P64}; mov edx, {n}; syscall",
    "rax rcx r11 rdi rsi rdx | mov eax, 1; mov edi, 102; mov esi, 8; mov edx, 9; syscall",
];

/// Faults that the program's own handler sees.
pub const FAULTS: &[&str] = &[
    "xor {a32}, {a32}; {F} mov {r64}, qword ptr [{a64} + {o}]",
    "xor {a32}, {a32}; {F} mov dword ptr [{a64} + {o}], {r32}",
    "mov {a32}, {o}; {F} add byte ptr [{a64}], {n}",
    "mov {a32}, {o}; {F} lock inc dword ptr [{a64}]",
    "mov {a32}, {o}; {F} push qword ptr [{a64}]",
    "mov {a32}, {o}; {F} call qword ptr [{a64}]",
    "mov {a32}, {o}; {F} jmp qword ptr [{a64}]",
    "mov {a32}, {o}; {F} movups {x}, xmmword ptr [{a64}]",
    "mov {a32}, {o}; {F} xchg qword ptr [{a64}], {b64}",
    "avx | mov {a32}, {o}; {F} vmovups ymmword ptr [{a64}], {y}",
    "movabs {a64}, 0x8000000000000000; {F} mov {r64}, qword ptr [{a64} + {o}]",
    "movabs {a64}, 0x8000000000000000; {F} inc qword ptr [{a64} + {o}]",
    "rbp | movabs rbp, 0x8000000000000000; {F} mov {r64}, qword ptr [rbp + {o}]",
    "rax rdx | mov {m8}, 0; {F} div {ms}",
    "rax rdx | mov {m4}, 0; {F} idiv {ms}",
    "{F} ud2",
    "{F} int3",
    "lea {a64}, [rip + oracle_programs]; {F} mov qword ptr [{a64}], {q}",
    "lea {a64}, {P32}; and {a64}, -16; or {a64}, 8; {F} movaps {x}, xmmword ptr [{a64}]",
    "lea {a64}, {P32}; and {a64}, -16; or {a64}, 8; {F} paddq {x}, xmmword ptr [{a64}]",
    "mov {a64}, qword ptr [rip + oracle_mixed + {o}]; mov {b64}, {rounds64}; and {b64}, 1; neg {b64}; and {a64}, {b64}; \
     {F} mov {r64}, qword ptr [{a64} + 8]",
    "mov {a64}, qword ptr [rip + oracle_mixed + {o}]; mov {b64}, {rounds64}; and {b64}, 1; neg {b64}; and {a64}, {b64}; \
     {F} add dword ptr [{a64} + 12], {r32}",
    "rdi rcx rsi | xor edi, edi; lea rsi, {P64}; mov ecx, 5; {F} rep movsb",
    "rdi | mov edi, 64; {F} stosq",
    // 16 bytes before a page that cannot be accessed.
    "rdi rcx rsi | mov rdi, qword ptr [rip + oracle_guard]; lea rsi, {P64}; mov ecx, 40; {F} rep movsb",
    "rdi rcx rsi | mov rsi, qword ptr [rip + oracle_guard]; lea rdi, {P64}; mov ecx, 5; {F} rep movsq",
    "rdi rcx rsi | mov rsi, qword ptr [rip + oracle_guard]; lea rdi, {P64}; mov ecx, 50; {F} repne cmpsw",
    "rdi rcx | mov rdi, qword ptr [rip + oracle_guard]; mov ecx, {n}; {F} rep stosb",
    "rdi rsi | mov rdi, qword ptr [rip + oracle_guard]; lea rsi, {P64}; movsq; movsq; {F} movsb",
    "mov {a64}, qword ptr [rip + oracle_guard]; {F} movups {x}, xmmword ptr [{a64} + 8]",
    "mov {a64}, qword ptr [rip + oracle_guard]; {F} movups xmmword ptr [{a64} + 1], {x}",
    "mov {a64}, qword ptr [rip + oracle_guard]; push {q}; {F} pop qword ptr [{a64} + 12]; lea rsp, [rsp + 8]",
    // A good operand in the heap, and a bad stack.
    "mov {a64}, rsp; mov esp, 64; {F} push qword ptr [{base128} + {o}]; mov rsp, {a64}",
    "mov {a64}, rsp; mov esp, 64; {F} call qword ptr [{base128} + {o}]; mov rsp, {a64}",
    "mov {a64}, rsp; mov esp, 64; {F} pop qword ptr [{base128} + {o}]; mov rsp, {a64}",
];
