/* Tells Thermalloc about memory that a program manages by itself, and steers monitoring.
 *
 * Nothing is linked: each call does nothing unless Thermalloc is in the process (preloaded, or linked in), and then
 * costs a load and a branch. Works in C and C++, with GCC and clang, on x86-64, in code of any placement. */
#ifndef THERMALLOC_H
#define THERMALLOC_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The address of a function of the runtime, or null. It is read from the global offset table: a plain weak reference
 * would be bound to null when a program that is not position-independent is linked. */
#define THERMALLOC_FIND_(function, name) \
    __asm__("\t.weak " name "\n\tmovq " name "@GOTPCREL(%%rip), %0" : "=r"(function))

#define THERMALLOC_INLINE_ static inline __attribute__((always_inline, unused))

/* [base, base + length) is a pool that hands out chunks of chunk_size bytes, the first at base: each chunk gets heat of
 * its own. chunk_size 0: one object, until thermalloc_object names others in it. The label, copied, stands for the
 * call stack in reports; it may be null. */
#define thermalloc_pool(base, length, chunk_size, label) thermalloc_inline_pool_(base, length, chunk_size, label)
THERMALLOC_INLINE_ void thermalloc_inline_pool_(void *base, size_t length, size_t chunk_size, const char *label) {
    void (*function)(void *, size_t, size_t, const char *);
    THERMALLOC_FIND_(function, "thermalloc_pool");
    if (function)
        function(base, length, chunk_size, label);
}

/* An object of size bytes begins to live at p, inside memory that a pool or an allocation holds. */
#define thermalloc_object(p, size, label) thermalloc_inline_object_(p, size, label)
THERMALLOC_INLINE_ void thermalloc_inline_object_(void *p, size_t size, const char *label) {
    void (*function)(void *, size_t, const char *);
    THERMALLOC_FIND_(function, "thermalloc_object");
    if (function)
        function(p, size, label);
}

/* The object or pool that begins at p ends. */
#define thermalloc_free(p) thermalloc_inline_free_(p)
THERMALLOC_INLINE_ void thermalloc_inline_free_(void *p) {
    void (*function)(void *);
    THERMALLOC_FIND_(function, "thermalloc_free");
    if (function)
        function(p);
}

/* Monitoring begins, or goes on after thermalloc_stop. */
#define thermalloc_start() thermalloc_inline_start_()
THERMALLOC_INLINE_ void thermalloc_inline_start_(void) {
    void (*function)(void);
    THERMALLOC_FIND_(function, "thermalloc_start");
    if (function)
        function();
}

/* Monitoring pauses: accesses are neither counted nor slowed. */
#define thermalloc_stop() thermalloc_inline_stop_()
THERMALLOC_INLINE_ void thermalloc_inline_stop_(void) {
    void (*function)(void);
    THERMALLOC_FIND_(function, "thermalloc_stop");
    if (function)
        function();
}

/* Writes a report of what was counted so far to path, or where the options say if path is null. */
#define thermalloc_snapshot(path) thermalloc_inline_snapshot_(path)
THERMALLOC_INLINE_ void thermalloc_inline_snapshot_(const char *path) {
    void (*function)(const char *);
    THERMALLOC_FIND_(function, "thermalloc_snapshot");
    if (function)
        function(path);
}

#ifdef __cplusplus
}
#endif
#endif
