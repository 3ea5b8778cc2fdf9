// io_uring with its parameters, submitted buffers and results on the heap. Says ok where the kernel has none.
#include "victim.h"
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

static char *sq, *cq;
static struct io_uring_sqe *sqes;
static struct io_uring_params *params;
static int ring;

static int run(struct io_uring_sqe entry) {
    unsigned *tail = (unsigned *)(sq + params->sq_off.tail), mask = *(unsigned *)(sq + params->sq_off.ring_mask);
    unsigned *array = (unsigned *)(sq + params->sq_off.array), *head = (unsigned *)(cq + params->cq_off.head);
    unsigned cq_mask = *(unsigned *)(cq + params->cq_off.ring_mask);
    sqes[*tail & mask] = entry;
    array[*tail & mask] = *tail & mask;
    atomic_store((_Atomic unsigned *)tail, *tail + 1);
    CHECK(syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1);
    struct io_uring_cqe *done = (struct io_uring_cqe *)(cq + params->cq_off.cqes) + (*head & cq_mask);
    CHECK(done->user_data == entry.user_data);
    int result = done->res;
    atomic_store((_Atomic unsigned *)head, *head + 1);
    return result;
}

int main(void) {
    params = calloc(1, sizeof *params);
    ring = syscall(SYS_io_uring_setup, 8, params);
    if (ring >= 0) {
        int protection = PROT_READ | PROT_WRITE;
        sq = mmap(NULL, params->sq_off.array + params->sq_entries * 4, protection, MAP_SHARED, ring, IORING_OFF_SQ_RING);
        cq = mmap(NULL, params->cq_off.cqes + params->cq_entries * sizeof(struct io_uring_cqe), protection,
                  MAP_SHARED, ring, IORING_OFF_CQ_RING);
        sqes = mmap(NULL, params->sq_entries * sizeof *sqes, protection, MAP_SHARED, ring, IORING_OFF_SQES);
        CHECK(sq != MAP_FAILED && cq != MAP_FAILED && sqes != MAP_FAILED);
        CHECK(run((struct io_uring_sqe){.opcode = IORING_OP_NOP, .user_data = 9}) == 0);
        int pipes[2];
        char *in = malloc(100), *out = malloc(100);
        struct iovec *vector = malloc(sizeof *vector);
        fill(out, 100, 3);
        *vector = (struct iovec){out, 100};
        CHECK(pipe(pipes) == 0);
        CHECK(run((struct io_uring_sqe){.opcode = IORING_OP_WRITEV, .fd = pipes[1], .addr = (uintptr_t)vector,
                                        .len = 1, .off = -1, .user_data = 10}) == 100);
        CHECK(run((struct io_uring_sqe){.opcode = IORING_OP_READ, .fd = pipes[0], .addr = (uintptr_t)in, .len = 100,
                                        .off = -1, .user_data = 11}) == 100);
        CHECK(filled(in, 100, 3));
    }
    say("ok");
    return 0;
}
