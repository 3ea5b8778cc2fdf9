//! flags: -lrt -pthread
// System calls on sockets, time, processes and memory, with every pointer that they are given on the heap.
#include "victim.h"
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>

static char *data(size_t n, unsigned seed) {
    char *bytes = malloc(n);
    fill(bytes, n, seed);
    return bytes;
}

static void sockets(void) {
    int *pair = malloc(2 * sizeof *pair), *one = malloc(sizeof *one);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    CHECK(send(pair[0], data(50, 1), 50, 0) == 50);
    char *buffer = malloc(200);
    CHECK(recv(pair[1], buffer, 200, 0) == 50 && filled(buffer, 50, 1));
    // A message with a descriptor in its control part
    struct msghdr *message = calloc(1, sizeof *message);
    struct iovec *vector = malloc(2 * sizeof *vector);
    vector[0] = (struct iovec){data(10, 2), 10}, vector[1] = (struct iovec){data(20, 3), 20};
    message->msg_iov = vector, message->msg_iovlen = 2;
    message->msg_controllen = CMSG_SPACE(sizeof(int)), message->msg_control = calloc(1, CMSG_SPACE(sizeof(int)));
    struct cmsghdr *control = CMSG_FIRSTHDR(message);
    *control = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(control), &pair[0], sizeof(int));
    CHECK(sendmsg(pair[0], message, 0) == 30);
    memset(message->msg_control, 0, message->msg_controllen);
    vector[0] = (struct iovec){malloc(25), 25}, vector[1] = (struct iovec){malloc(100), 100};
    CHECK(recvmsg(pair[1], message, 0) == 30 && filled(vector[0].iov_base, 10, 2));
    memcpy(one, CMSG_DATA(CMSG_FIRSTHDR(message)), sizeof(int));
    CHECK(write(*one, "z", 1) == 1 && read(pair[1], buffer, 5) == 1);
    // Addresses and options
    int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in *address = calloc(1, sizeof *address);
    socklen_t *length = malloc(sizeof *length);
    address->sin_family = AF_INET, address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *one = 1, *length = sizeof *address;
    CHECK(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, one, sizeof *one) == 0);
    CHECK(bind(listener, (struct sockaddr *)address, sizeof *address) == 0 && listen(listener, 5) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)address, length) == 0 && *length == 16 && address->sin_port != 0);
    CHECK(connect(client, (struct sockaddr *)address, sizeof *address) == 0);
    struct sockaddr_storage *peer = malloc(sizeof *peer);
    *length = sizeof *peer;
    int served = accept(listener, (struct sockaddr *)peer, length);
    CHECK(served >= 0 && *length == 16 && peer->ss_family == AF_INET);
    *length = sizeof *one;
    CHECK(getsockopt(served, SOL_SOCKET, SO_TYPE, one, length) == 0 && *one == SOCK_STREAM && *length == sizeof *one);
    *length = sizeof *peer;
    CHECK(sendto(client, data(9, 4), 9, 0, NULL, 0) == 9);
    CHECK(recvfrom(served, buffer, 100, 0, (struct sockaddr *)peer, length) == 9 && filled(buffer, 9, 4));
    struct mmsghdr *many = calloc(2, sizeof *many);
    for (int i = 0; i < 2; i++) {
        many[i].msg_hdr.msg_iov = malloc(sizeof(struct iovec)), many[i].msg_hdr.msg_iovlen = 1;
        *many[i].msg_hdr.msg_iov = (struct iovec){data(6, i), 6};
    }
    CHECK(sendmmsg(client, many, 2, 0) == 2 && many[1].msg_len == 6);
    CHECK(recv(served, buffer, 12, MSG_WAITALL) == 12);
    CHECK(shutdown(client, SHUT_WR) == 0 && recv(served, buffer, 12, 0) == 0);
}

static void times_and_identity(void) {
    struct timespec *now = calloc(2, sizeof *now);
    struct timeval *day = calloc(1, sizeof *day);
    struct tm *broken = malloc(sizeof *broken);
    time_t *seconds = calloc(1, sizeof *seconds);
    unsigned *cpu = calloc(2, sizeof *cpu);
    for (int i = 0; i < 10; i++) { // the vDSO writes these
        CHECK(clock_gettime(CLOCK_MONOTONIC, now) == 0 && clock_gettime(CLOCK_REALTIME, now + 1) == 0);
        CHECK(gettimeofday(day, NULL) == 0 && day->tv_sec >= now[1].tv_sec && time(seconds) == *seconds);
        CHECK(getcpu(cpu, cpu + 1) == 0 && clock_getres(CLOCK_MONOTONIC, now) == 0);
    }
    CHECK(syscall(SYS_clock_gettime, CLOCK_REALTIME, now) == 0 && now->tv_sec > 1000);
    *seconds = 86400;
    CHECK(gmtime_r(seconds, broken) == broken && broken->tm_mday == 2);
    CHECK(uname(malloc(sizeof(struct utsname))) == 0 && sysinfo(malloc(sizeof(struct sysinfo))) == 0);
    CHECK(times(malloc(sizeof(struct tms))) != -1);
    gid_t *groups = malloc(200 * sizeof *groups), *ids = malloc(3 * sizeof *ids);
    CHECK(getgroups(200, groups) >= 0 && getresuid(ids, ids + 1, ids + 2) == 0 && ids[0] == getuid());
    CHECK(getrandom(groups, 200, 0) == 200);
    struct sigevent *event = calloc(1, sizeof *event);
    timer_t *timer = malloc(sizeof *timer);
    struct itimerspec *spec = calloc(1, sizeof *spec);
    event->sigev_notify = SIGEV_SIGNAL, event->sigev_signo = SIGUSR1;
    sigset_t *set = malloc(sizeof *set);
    siginfo_t *info = malloc(sizeof *info);
    sigemptyset(set), sigaddset(set, SIGUSR1), sigprocmask(SIG_BLOCK, set, NULL);
    CHECK(timer_create(CLOCK_MONOTONIC, event, timer) == 0);
    spec->it_value.tv_nsec = 1000;
    CHECK(timer_settime(*timer, 0, spec, NULL) == 0 && sigwaitinfo(set, info) == SIGUSR1);
    CHECK(timer_gettime(*timer, spec) == 0 && timer_delete(*timer) == 0);
}

static void processes_and_memory(void) {
    int *status = malloc(sizeof *status), *pipes = malloc(8);
    CHECK(pipe(pipes) == 0);
    pid_t child = fork();
    if (child == 0) _exit(21);
    siginfo_t *info = malloc(sizeof *info);
    CHECK(waitid(P_PID, child, info, WEXITED | WNOWAIT) == 0 && info->si_status == 21);
    CHECK(wait4(child, status, 0, malloc(sizeof(struct rusage) + 200)) == child && WEXITSTATUS(*status) == 21);
    // A heap buffer as the remote side of a transfer, and through /proc/self/mem
    struct iovec *mine = malloc(sizeof *mine), *theirs = malloc(sizeof *theirs);
    *theirs = (struct iovec){data(40, 5), 40}, *mine = (struct iovec){malloc(40), 40};
    if (process_vm_readv(getpid(), mine, 1, theirs, 1, 0) == 40) CHECK(filled(mine->iov_base, 40, 5));
    struct sched_param *parameter = malloc(sizeof *parameter);
    CHECK(sched_getparam(0, parameter) == 0 && sched_rr_get_interval(0, malloc(16)) == 0);
    char *name = strdup("victim");
    int memory = memfd_create(name, 0);
    CHECK(memory >= 0 && write(memory, name, 6) == 6);
    char *mapped = mmap(NULL, 6, PROT_READ, MAP_PRIVATE, memory, 0);
    CHECK(memcmp(mapped, name, 6) == 0);
    CHECK(brk(sbrk(0)) == 0 && syscall(SYS_get_robust_list, 0, malloc(8), malloc(8)) == 0);
    CHECK(syscall(SYS_set_tid_address, malloc(8)) == syscall(SYS_gettid));
}

int main(void) {
    sockets();
    say("sockets");
    times_and_identity();
    say("times and identity");
    processes_and_memory();
    say("processes and memory");
    return 0;
}
