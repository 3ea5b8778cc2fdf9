//! Processes, scheduling, limits, the machine.

use crate::check::case;
use crate::stage::Stage;
use libc::*;

#[test]
fn machine() {
    case(SYS_uname, |s| [s.room(size_of::<utsname>())]).holds();
    case(SYS_sysinfo, |s| [s.room(size_of::<sysinfo>())]).holds();
    case(SYS_getcpu, |s| [s.room(4), s.room(4), 0]).holds();
}

#[test]
fn limits_and_usage() {
    let core = RLIMIT_CORE as u64;
    case(SYS_getrlimit, |s| [core, s.room(16)]).holds();
    case(SYS_setrlimit, |s| {
        let limit = s.zeros(16);
        s.need(SYS_getrlimit, &[core, limit]);
        [core, limit]
    })
    .holds();
    case(SYS_prlimit64, |s| {
        let limit = s.zeros(16);
        s.need(SYS_getrlimit, &[core, limit]);
        [0, core, limit, s.room(16)]
    })
    .holds();
    case(SYS_getrusage, |s| [RUSAGE_SELF as u64, s.room(size_of::<rusage>())]).holds();
    case(SYS_times, |s| [s.room(size_of::<tms>())]).holds();
}

#[test]
fn options_of_the_process() {
    case(SYS_prctl, |s| [PR_SET_NAME as u64, s.text("oracle")]).holds();
    case(SYS_prctl, |s| [PR_SET_NAME as u64, s.text("a name that is far too long")]).holds();
    case(SYS_prctl, |s| [PR_GET_NAME as u64, s.room(16)]).holds();
    case(SYS_prctl, |s| [PR_GET_PDEATHSIG as u64, s.room(4)]).holds();
    case(SYS_prctl, |s| [PR_GET_CHILD_SUBREAPER as u64, s.room(4)]).holds();
    case(SYS_prctl, |s| [PR_GET_TID_ADDRESS as u64, s.room(8)]).optional().holds();
    case(SYS_prctl, |s| [0x4155_5856, s.room(64), 64, 0, 0]).optional().holds();
    case(SYS_arch_prctl, |s| [0x1003, s.room(8)]).holds();
}

#[test]
fn scheduling() {
    case(SYS_sched_getparam, |s| [0, s.room(4)]).holds();
    case(SYS_sched_setparam, |s| [0, s.ints(&[0])]).holds();
    case(SYS_sched_setscheduler, |s| [0, SCHED_OTHER as u64, s.ints(&[0])]).holds();
    case(SYS_sched_rr_get_interval, |s| [0, s.room(16)]).holds();
    case(SYS_sched_getaffinity, |s| [0, 128, s.room(128)]).holds();
    case(SYS_sched_setaffinity, |s| {
        let mask = s.zeros(128);
        s.need(SYS_sched_getaffinity, &[0, 128, mask]);
        [0, 128, mask]
    })
    .holds();
    case(SYS_sched_getattr, |s| [0, s.room(56), 56, 0]).holds();
    case(SYS_sched_getattr, |s| [0, s.room(48), 48, 0]).holds();
    case(SYS_sched_setattr, |s| {
        let attributes = s.zeros(56);
        s.need(SYS_sched_getattr, &[0, attributes, 56, 0]);
        [0, attributes, 0]
    })
    .holds();
}

#[test]
fn credentials() {
    case(SYS_getresuid, |s| [s.room(4), s.room(4), s.room(4)]).holds();
    case(SYS_getresgid, |s| [s.room(4), s.room(4), s.room(4)]).holds();
    case(SYS_getgroups, |s| [100, s.room(400)]).holds();
    case(SYS_capget, |s| [s.ints(&[0x2008_0522, 0]), s.room(24)]).holds();
    case(SYS_capget, |s| [s.ints(&[0x1998_0330, 0]), s.room(12)]).holds();
    case(SYS_capget, |s| [s.ints(&[77, 0]), s.room(24)]).fails(EINVAL).holds();
    case(SYS_seccomp, |s| [2, 0, s.ints(&[SECCOMP_RET_ALLOW])]).holds();
    case(SYS_seccomp, |s| [3, 0, s.room(6)]).holds();
    case(SYS_landlock_create_ruleset, |s| [s.words(&[1]), 8, 0]).optional().holds();
    case(461, |s| [s.room(512), s.ints(&[512]), 0]).optional().holds();
}

#[test]
fn threads_words() {
    case(SYS_get_robust_list, |s| [0, s.room(8), s.room(8)]).holds();
}

#[test]
fn address_space() {
    let own = |s: &mut Stage| s.zeros(3 * 4096);
    case(SYS_mincore, |s| [own(s), 3 * 4096, s.room(3)]).holds();
    case(SYS_get_mempolicy, |s| [s.room(4), s.room(128), 1025, 0, 0]).optional().holds();
    case(SYS_set_mempolicy, |s| [MPOL_DEFAULT as u64, s.zeros(128), 1025]).optional().holds();
    case(SYS_modify_ldt, |s| [0, s.room(64), 64]).optional().holds();
    case(SYS_madvise, |s| [own(s), 3 * 4096, MADV_POPULATE_WRITE as u64]).optional().holds();
    case(SYS_madvise, |s| [own(s), 3 * 4096, MADV_POPULATE_READ as u64]).optional().holds();
    case(SYS_mlock, |s| [own(s), 3 * 4096]).optional().holds();
    case(SYS_move_pages, |s| {
        let page = s.zeros(4096);
        [0, 1, s.words(&[page]), 0, s.room(4), 0]
    })
    .optional()
    .holds();
}
