//! Which instructions the test process may run, and which of them fault beyond their accesses.

use iced_x86::{Code, FlowControl, Instruction, Mnemonic, OpKind};

/// Instructions that may fault where they transfer nothing: `enter` checks the end of the new frame, and some
/// masked stores have no fault suppression. What they write is still compared byte by byte.
pub fn checks_more(instruction: &Instruction) -> bool {
    use Mnemonic as M;
    matches!(
        instruction.mnemonic(),
        M::Enter
            | M::Maskmovq
            | M::Maskmovdqu
            | M::Vmaskmovdqu
            | M::Vextractf32x4
            | M::Vextractf32x8
            | M::Vextractf64x2
            | M::Vextractf64x4
            | M::Vextracti32x4
            | M::Vextracti32x8
            | M::Vextracti64x2
            | M::Vextracti64x4
    )
}

/// May the test process run it? Not what leaves the thread, loads segments, answers differently each time, takes
/// the trap flag away, or is emulated by the kernel. Cache-line flushes fault without transferring anything.
pub fn safe(instruction: &Instruction) -> bool {
    let loads_segment = instruction.op0_kind() == OpKind::Register
        && instruction.op0_register().is_segment_register()
        && instruction.mnemonic() != Mnemonic::Push;
    let far = matches!(
        instruction.code(),
        Code::Retfw | Code::Retfd | Code::Retfq | Code::Retfw_imm16 | Code::Retfd_imm16 | Code::Retfq_imm16
    ) || instruction.is_jmp_far_indirect()
        || instruction.is_call_far_indirect();
    let leaves = matches!(instruction.flow_control(), FlowControl::Interrupt | FlowControl::XbeginXabortXend);
    !(loads_segment || far || leaves || excluded(instruction.mnemonic()))
}

fn excluded(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Syscall
            | M::Sysenter
            | M::Sysret
            | M::Sysexit
            | M::Sysretq
            | M::Sysexitq
            | M::Popf
            | M::Popfq
            | M::Iret
            | M::Iretd
            | M::Iretq
            | M::Int1
            | M::Lss
            | M::Lfs
            | M::Lgs
            | M::Wrfsbase
            | M::Wrgsbase
            | M::Swapgs
            | M::Sgdt
            | M::Sidt
            | M::Sldt
            | M::Str
            | M::Smsw
            | M::Rdtsc
            | M::Rdtscp
            | M::Rdrand
            | M::Rdseed
            | M::Cpuid
            | M::Rdpmc
            | M::Vmcall
            | M::Vmmcall
            | M::Vmfunc
            | M::Encls
            | M::Enclu
            | M::Enclv
            | M::Getsec
            | M::Clflush
            | M::Clflushopt
            | M::Clwb
            | M::Xrstor
            | M::Xrstor64
            | M::Wrpkru
            | M::Rdpkru
    )
}
