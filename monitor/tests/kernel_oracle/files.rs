//! Calls that name files.

use crate::check::case;
use crate::stage::Stage;
use libc::*;
use thermalloc_monitor::kernel::Memory;

const HERE: u64 = AT_FDCWD as i64 as u64;
const CACHESTAT: c_long = 451;
const STATMOUNT: c_long = 457;
const LISTMOUNT: c_long = 458;
const SETXATTRAT: c_long = 463;
const GETXATTRAT: c_long = 464;
const LISTXATTRAT: c_long = 465;
const REMOVEXATTRAT: c_long = 466;
const FILE_GETATTR: c_long = 468;

#[test]
fn opening() {
    case(SYS_open, |s| [s.path("file"), O_RDONLY as u64]).holds();
    case(SYS_open, |s| [s.path("missing"), O_RDONLY as u64]).fails(ENOENT).holds();
    case(SYS_openat, |s| [HERE, s.path("file"), O_RDONLY as u64]).holds();
    case(SYS_openat2, |s| [HERE, s.path("file"), s.words(&[0, 0, 0]), 24]).holds();
    case(SYS_memfd_create, |s| [s.text("a name"), 0]).holds();
    case(SYS_creat, |s| [s.path("new"), 0o600]).holds();
    case(SYS_inotify_add_watch, |s| [s.open(SYS_inotify_init1, &[0]), s.path("file"), u64::from(IN_OPEN)])
        .holds();
}

#[test]
fn status() {
    let stat = size_of::<stat>();
    case(SYS_stat, |s| [s.path("file"), s.room(stat)]).holds();
    case(SYS_lstat, |s| [s.path("link"), s.room(stat)]).holds();
    case(SYS_fstat, |s| [s.file(), s.room(stat)]).holds();
    case(SYS_newfstatat, |s| [HERE, s.path("file"), s.room(stat), 0]).holds();
    case(SYS_newfstatat, |s| [HERE, s.path("missing"), s.room(stat), 0]).fails(ENOENT).holds();
    case(SYS_statx, |s| [HERE, s.path("file"), 0, u64::from(STATX_ALL), s.room(256)]).holds();
    case(SYS_statfs, |s| [s.path("file"), s.room(size_of::<statfs>())]).holds();
    case(SYS_fstatfs, |s| [s.file(), s.room(size_of::<statfs>())]).holds();
    case(SYS_access, |s| [s.path("file"), R_OK as u64]).holds();
    case(SYS_faccessat2, |s| [HERE, s.path("missing"), 0, 0]).fails(ENOENT).holds();
    case(CACHESTAT, |s| [s.file(), s.words(&[0, 0]), s.room(40), 0]).optional().holds();
    case(FILE_GETATTR, |s| [HERE, s.path("file"), s.room(24), 24, 0]).optional().holds();
}

#[test]
fn directories() {
    case(SYS_getcwd, |s| [s.room(4096), 4096]).holds();
    case(SYS_readlink, |s| [s.path("link"), s.room(100), 100]).holds();
    case(SYS_readlinkat, |s| [HERE, s.path("link"), s.room(2), 2]).holds();
    case(SYS_mkdir, |s| [s.path("new"), 0o700]).holds();
    case(SYS_mkdirat, |s| [HERE, s.path("folder"), 0o700]).fails(EEXIST).holds();
    case(SYS_rmdir, |s| [s.path("folder")]).holds();
    case(SYS_unlinkat, |s| [HERE, s.path("file"), 0]).holds();
    // The padding between names stays as it was.
    case(SYS_getdents64, |s| {
        let folder = s.path(".");
        [s.open(SYS_open, &[folder, O_DIRECTORY as u64]), s.room(4096), 4096]
    })
    .loose()
    .holds();
}

#[test]
fn two_names() {
    for nr in [SYS_rename, SYS_link] {
        case(nr, |s| [s.path("file"), s.path("other")]).holds();
    }
    case(SYS_symlink, |s| [s.text("target"), s.path("other")]).holds();
    case(SYS_symlinkat, |s| [s.text("target"), HERE, s.path("other")]).holds();
    case(SYS_renameat2, |s| [HERE, s.path("file"), HERE, s.path("other"), 0]).holds();
    case(SYS_linkat, |s| [HERE, s.path("file"), HERE, s.path("other"), 0]).holds();
}

#[test]
fn attributes() {
    case(SYS_chmod, |s| [s.path("file"), 0o600]).holds();
    case(SYS_fchmodat, |s| [HERE, s.path("file"), 0o600]).holds();
    case(SYS_chown, |s| [s.path("file"), u64::MAX, u64::MAX]).holds();
    case(SYS_truncate, |s| [s.path("file"), 5]).holds();
    case(SYS_utime, |s| [s.path("file"), s.words(&[5, 6])]).holds();
    case(SYS_utimes, |s| [s.path("file"), s.words(&[5, 6, 7, 8])]).holds();
    case(SYS_utimensat, |s| [HERE, s.path("file"), s.words(&[5, 6, 7, 8]), 0]).holds();
    case(SYS_utimensat, |s| [HERE, s.path("missing"), s.words(&[5, 6, 7, 8]), 0]).fails(ENOENT).holds();
}

/// A file with an attribute, if its file system has any.
fn attributed(s: &mut Stage) -> u64 {
    let (path, name, value) = (s.path("file"), s.text("user.colour"), s.bytes(b"blue"));
    s.need(SYS_setxattr, &[path, name, value, 4, 0]);
    s.path("file")
}

fn has_attributes() -> bool {
    let mut s = Stage::new(0);
    let path = std::ffi::CString::new(s.directory().join("file").to_str().unwrap()).unwrap();
    let has = set_attribute(&path) == 0;
    if !has {
        println!("SKIP extended attributes: the temporary directory has none");
    }
    has
}

#[allow(unsafe_code)]
fn set_attribute(path: &std::ffi::CStr) -> i32 {
    // SAFETY: C strings and four bytes.
    unsafe { setxattr(path.as_ptr(), c"user.colour".as_ptr(), b"blue".as_ptr().cast(), 4, 0) }
}

#[test]
fn extended_attributes() {
    if !has_attributes() {
        return;
    }
    case(SYS_setxattr, |s| [s.path("file"), s.text("user.a"), s.bytes(b"value"), 5, 0]).holds();
    case(SYS_fsetxattr, |s| [s.file(), s.text("user.a"), s.bytes(b"value"), 5, 0]).holds();
    case(SYS_getxattr, |s| [attributed(s), s.text("user.colour"), s.room(10), 10]).holds();
    case(SYS_getxattr, |s| [attributed(s), s.text("user.colour"), s.room(10), 0]).holds();
    case(SYS_getxattr, |s| [s.path("file"), s.text("user.none"), s.room(10), 10]).fails(ENODATA).holds();
    case(SYS_listxattr, |s| [attributed(s), s.room(100), 100]).holds();
    case(SYS_removexattr, |s| [attributed(s), s.text("user.colour")]).holds();
    case(LISTXATTRAT, |s| [HERE, attributed(s), 0, s.room(100), 100]).optional().holds();
    case(REMOVEXATTRAT, |s| [HERE, attributed(s), 0, s.text("user.colour")]).optional().holds();
    case(SETXATTRAT, |s| {
        let value = s.bytes(b"value");
        [HERE, s.path("file"), 0, s.text("user.a"), s.words(&[value, 5]), 16]
    })
    .optional()
    .holds();
    case(GETXATTRAT, |s| {
        let value = s.room(10);
        [HERE, attributed(s), 0, s.text("user.colour"), s.words(&[value, 10]), 16]
    })
    .optional()
    .holds();
}

#[test]
fn handles() {
    let handle = |s: &mut Stage, room: u32| {
        let words = [&[room, 0][..], &[0x7e7e_7e7e; 32]].concat();
        s.ints(&words)
    };
    case(SYS_name_to_handle_at, |s| [HERE, s.path("file"), handle(s, 128), s.room(4), 0]).optional().holds();
    case(SYS_name_to_handle_at, |s| {
        let header = s.ints(&[0, 0]);
        [HERE, s.path("file"), header, s.room(4), 0]
    })
    .fails(EOVERFLOW)
    .optional()
    .holds();
}

#[test]
fn handles_back_to_files() {
    case(SYS_open_by_handle_at, |s| {
        let (path, mount_id) = (s.path("file"), s.zeros(4));
        let probe = s.ints(&[&[128, 0][..], &[0; 32]].concat());
        s.need(SYS_name_to_handle_at, &[HERE, path, probe, mount_id, 0]);
        let directory = s.path(".");
        let directory = s.open(SYS_open, &[directory, O_DIRECTORY as u64]);
        let len = 8 + s.word(probe) as u32 as usize;
        let mut handle = vec![0; len];
        assert!(s.read(probe, &mut handle));
        [directory, s.bytes(&handle), O_RDONLY as u64]
    })
    .optional()
    .holds();
}

#[test]
fn mounts() {
    let root = u64::MAX;
    case(LISTMOUNT, |s| [s.words(&[24, root, 0]), s.room(80), 10, 0]).optional().holds();
    const STATMOUNT_MNT_POINT: u64 = 0x10;
    case(STATMOUNT, |s| {
        let mut list = Stage::new(0);
        let (request, ids) = (list.words(&[24, root, 0]), list.zeros(8));
        list.need(LISTMOUNT, &[request, ids, 1, 0]);
        [s.words(&[24, list.word(ids), STATMOUNT_MNT_POINT]), s.room(2048), 2048, 0]
    })
    .optional()
    .holds();
    for nr in [SYS_swapon, SYS_chroot, SYS_acct, SYS_umount2] {
        case(nr, |s| [s.path("missing"), 0]).fails(ENOENT).optional().holds();
    }
    case(SYS_mount_setattr, |s| [HERE, s.path("missing"), 0, s.words(&[1, 0, 0, 0]), 32])
        .fails(ENOENT)
        .optional()
        .holds();
    case(SYS_open_tree, |s| [HERE, s.path("missing"), 0]).fails(ENOENT).optional().holds();
    case(SYS_fsopen, |s| [s.text("tmpfs"), 1]).optional().holds();
    case(SYS_mount, |s| [s.text("none"), s.path("missing"), s.text("tmpfs"), 0, s.zeros(4096)])
        .fails(ENOENT)
        .optional()
        .holds();
}
