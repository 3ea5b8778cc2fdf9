//! Processes, scheduling, limits, the machine.

use crate::check::case;
use crate::stage::Stage;
use libc::*;

const LSM_LIST_MODULES: c_long = 461;

#[test]
fn machine() {
    case(SYS_uname, |s| [s.room(size_of::<utsname>())]).holds();
    case(SYS_sysinfo, |s| [s.room(size_of::<sysinfo>())]).holds();
    case(SYS_getcpu, |s| [s.room(4), s.room(4), 0]).holds();
    case(SYS_sysfs, |s| [2, 0, s.room(64)]).optional().holds();
    case(SYS_sysfs, |s| [1, s.text("proc")]).optional().holds();
    case(SYS_syslog, |s| [3, s.room(100), 100]).loose().optional().holds();
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
    case(LSM_LIST_MODULES, |s| [s.room(512), s.ints(&[512]), 0]).optional().holds();
}

#[test]
fn tracing_and_keys() {
    case(SYS_get_robust_list, |s| [0, s.room(8), s.room(8)]).holds();
    case(SYS_perf_event_open, |s| {
        // Software events, the size of the first version, the processor's clock.
        let attributes = s.ints(&[1, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        [attributes, 0, u64::MAX, u64::MAX, 0]
    })
    .optional()
    .holds();
    case(SYS_kcmp, |s| {
        let (own, fd) = (u64::from(std::process::id()), s.open(SYS_epoll_create1, &[0]));
        [own, own, 7, 0, s.ints(&[fd as u32, 9999, 0])]
    })
    .fails(ENOENT)
    .optional()
    .holds();
    case(SYS_landlock_add_rule, |s| {
        let attributes = s.words(&[1]);
        let ruleset = s.open(SYS_landlock_create_ruleset, &[attributes, 8, 0]);
        let directory = s.text("/");
        let directory = s.open(SYS_open, &[directory, O_PATH as u64]);
        let rule = [&1u64.to_ne_bytes()[..], &(directory as u32).to_ne_bytes()].concat();
        [ruleset, 1, s.bytes(&rule), 0]
    })
    .optional()
    .holds();
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
    case(SYS_mbind, |s| [own(s), 3 * 4096, MPOL_PREFERRED as u64, s.words(&[1]), 65, 0]).optional().holds();
    case(SYS_migrate_pages, |s| [0, 65, s.words(&[1]), s.words(&[1])]).optional().holds();
    case(SYS_process_madvise, |s| {
        let pages = own(s);
        let process = s.open(SYS_pidfd_open, &[u64::from(std::process::id()), 0]);
        [process, s.words(&[pages, 4096]), 1, MADV_COLD as u64, 0]
    })
    .optional()
    .holds();
    case(SYS_move_pages, |s| {
        let page = s.zeros(4096);
        [0, 1, s.words(&[page]), 0, s.room(4), 0]
    })
    .optional()
    .holds();
}
