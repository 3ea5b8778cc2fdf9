//! flags: -Wno-stringop-overflow -Wno-stringop-overread
// System calls on files, with every pointer that they are given on the heap, and with bad pointers.
#include "victim.h"
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/xattr.h>

static char *dir;
static char *in_dir(const char *name) {
    char *path = NULL;
    CHECK(asprintf(&path, "%s/%s", dir, name) > 0);
    return path;
}
// n bytes on the heap, filled
static char *data(size_t n, unsigned seed) {
    char *bytes = malloc(n);
    fill(bytes, n, seed);
    return bytes;
}

static void reading_and_writing(void) {
    char *path = in_dir("file"), *buffer = malloc(9000);
    int fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
    CHECK(fd >= 0 && write(fd, data(9000, 1), 9000) == 9000);
    CHECK(pread(fd, buffer, 9000, 0) == 9000 && filled(buffer, 100, 1));
    struct iovec *vector = malloc(3 * sizeof *vector);
    vector[0] = (struct iovec){malloc(10), 10}, vector[1] = (struct iovec){malloc(0), 0};
    vector[2] = (struct iovec){malloc(20), 20};
    CHECK(lseek(fd, 0, SEEK_SET) == 0 && readv(fd, vector, 3) == 30);
    CHECK(filled(vector[0].iov_base, 10, 1) && preadv(fd, vector, 3, 0) == 30 && preadv2(fd, vector, 3, 0, 0) == 30);
    CHECK(pwritev(fd, vector, 3, 100) == 30 && pwrite(fd, "xy", 2, 200) == 2 && writev(fd, vector, 3) == 30);
    CHECK(pread(fd, buffer, 30, 100) == 30 && filled(buffer, 10, 1));
    CHECK(lseek(fd, 8990, SEEK_SET) == 8990 && read(fd, buffer, 9000) == 10); // a short read
    struct stat *status = malloc(sizeof *status);
    CHECK(fstat(fd, status) == 0 && status->st_size == 9000 && stat(path, status) == 0 && lstat(path, status) == 0);
    struct statx *extended = malloc(sizeof *extended);
    CHECK(statx(AT_FDCWD, path, 0, STATX_SIZE, extended) == 0 && extended->stx_size == 9000);
    CHECK(statfs(path, malloc(sizeof(struct statfs))) == 0 && fstatfs(fd, malloc(sizeof(struct statfs))) == 0);
    int *waiting = malloc(sizeof *waiting), out = open(in_dir("copy"), O_CREAT | O_RDWR, 0600);
    CHECK(lseek(fd, 8000, SEEK_SET) == 8000 && ioctl(fd, FIONREAD, waiting) == 0 && *waiting == 1000);
    off_t *from = calloc(1, sizeof *from), *to = calloc(1, sizeof *to);
    CHECK(sendfile(out, fd, from, 500) == 500 && *from == 500);
    ssize_t copied = copy_file_range(fd, from, out, to, 300, 0);
    CHECK((copied == 300 && *from == 800 && *to == 300) || errno == EXDEV || errno == EOPNOTSUPP);
    int *pipes = malloc(2 * sizeof *pipes);
    *from = 10;
    CHECK(pipe2(pipes, O_CLOEXEC) == 0 && splice(fd, from, pipes[1], NULL, 100, 0) == 100 && *from == 110);
    CHECK(vmsplice(pipes[1], vector, 1, 0) == 10 && read(pipes[0], buffer, 200) == 110);
    struct flock *lock = calloc(1, sizeof *lock);
    lock->l_type = F_WRLCK;
    CHECK(fcntl(fd, F_SETLK, lock) == 0 && fcntl(fd, F_GETLK, lock) == 0 && lock->l_type == F_UNLCK);
    CHECK(ftruncate(fd, 50) == 0 && fsync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
    // Bad pointers are the program's own error.
    void *closed = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pread(fd, (void *)8, 10, 0) == -1 && errno == EFAULT && pread(fd, closed, 10, 0) == -1 && errno == EFAULT);
    CHECK(pwrite(fd, closed, 10, 0) == -1 && errno == EFAULT && read(-1, buffer, 10) == -1 && errno == EBADF);
    CHECK(syscall(SYS_open, 8, O_RDONLY) == -1 && errno == EFAULT && fstat(fd, (void *)8) == -1 && errno == EFAULT);
    vector[2].iov_base = closed;
    CHECK(preadv(fd, vector, 3, 0) == 10 && readv(fd, (void *)8, 3) == -1 && errno == EFAULT);
    CHECK(readv(fd, vector, -1) == -1 && errno == EINVAL && readv(fd, vector, 2000) == -1 && errno == EINVAL);
    CHECK(syscall(9999, buffer, buffer) == -1 && errno == ENOSYS);
    close(fd), close(out), close(pipes[0]), close(pipes[1]);
}

static void names(void) {
    char *buffer = malloc(5000);
    CHECK(mkdir(in_dir("sub"), 0700) == 0 && symlink(strdup("target"), in_dir("link")) == 0);
    CHECK(readlink(in_dir("link"), buffer, 5000) == 6 && memcmp(buffer, "target", 6) == 0);
    CHECK(rename(in_dir("copy"), in_dir("renamed")) == 0 && access(in_dir("renamed"), R_OK) == 0);
    CHECK(access(in_dir("copy"), R_OK) == -1 && errno == ENOENT && chmod(in_dir("renamed"), 0644) == 0);
    CHECK(link(in_dir("renamed"), in_dir("hard")) == 0 && truncate(in_dir("hard"), 7) == 0);
    struct timespec *times = calloc(2, sizeof *times);
    times[1].tv_sec = 1000;
    CHECK(utimensat(AT_FDCWD, in_dir("hard"), times, 0) == 0);
    if (setxattr(in_dir("hard"), strdup("user.heat"), data(20, 4), 20, 0) == 0) {
        CHECK(getxattr(in_dir("hard"), strdup("user.heat"), buffer, 100) == 20 && filled(buffer, 20, 4));
        CHECK(listxattr(in_dir("hard"), buffer, 100) >= 10);
    }
    CHECK(getcwd(buffer, 5000) == buffer && chdir(dir) == 0 && getcwd(buffer, 5000) == buffer);
    CHECK(strcmp(buffer, dir) == 0 && getcwd(buffer, 2) == NULL && errno == ERANGE);
    int count = 0;
    DIR *listing = opendir(dir);
    while (readdir(listing)) count++;
    CHECK(closedir(listing) == 0 && count == 7);
    static const char *const all[] = {"file", "link", "renamed", "hard"};
    for (int i = 0; i < 4; i++) CHECK(unlink(in_dir(all[i])) == 0);
    CHECK(rmdir(in_dir("sub")) == 0);
}

static void events(void) {
    int *pipes = malloc(2 * sizeof *pipes), ready = eventfd(0, 0), epoll = epoll_create1(0);
    uint64_t *count = malloc(sizeof *count);
    CHECK(pipe(pipes) == 0);
    struct epoll_event *event = malloc(4 * sizeof *event);
    event->events = EPOLLIN, event->data.u64 = 77;
    CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, ready, event) == 0 && epoll_wait(epoll, event, 4, 0) == 0);
    *count = 5;
    CHECK(write(ready, count, 8) == 8 && epoll_wait(epoll, event + 1, 3, 1000) == 1 && event[1].data.u64 == 77);
    CHECK(read(ready, count, 8) == 8 && *count == 5);
    struct pollfd *polled = malloc(2 * sizeof *polled);
    polled[0] = (struct pollfd){pipes[0], POLLIN, 0}, polled[1] = (struct pollfd){pipes[1], POLLOUT, 0};
    CHECK(poll(polled, 2, 0) == 1 && polled[0].revents == 0 && polled[1].revents == POLLOUT);
    CHECK(write(pipes[1], "x", 1) == 1 && ppoll(polled, 2, NULL, NULL) == 2 && polled[0].revents == POLLIN);
    fd_set *set = malloc(sizeof *set);
    struct timeval *limit = calloc(1, sizeof *limit);
    FD_ZERO(set);
    FD_SET(pipes[0], set);
    CHECK(select(pipes[0] + 1, set, NULL, NULL, limit) == 1 && FD_ISSET(pipes[0], set));
    int timer = timerfd_create(CLOCK_MONOTONIC, 0), watch = inotify_init1(IN_NONBLOCK);
    struct itimerspec *spec = calloc(2, sizeof *spec);
    spec->it_value.tv_nsec = 1000;
    CHECK(timerfd_settime(timer, 0, spec, spec + 1) == 0 && read(timer, count, 8) == 8 && *count == 1);
    CHECK(inotify_add_watch(watch, dir, IN_CREATE) > 0 && creat(in_dir("new"), 0600) >= 0);
    struct inotify_event *notice = malloc(4096);
    CHECK(read(watch, notice, 4096) >= (ssize_t)sizeof *notice && strcmp(notice->name, "new") == 0);
    CHECK(unlink(in_dir("new")) == 0);
}

int main(void) {
    dir = strdup("/tmp/victim.XXXXXX");
    CHECK(mkdtemp(dir) == dir);
    reading_and_writing();
    say("reading and writing");
    names();
    say("names");
    events();
    CHECK(rmdir(dir) == 0);
    say("events");
    return 0;
}
