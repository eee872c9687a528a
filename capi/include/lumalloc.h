/*
 * lumalloc.h - the C and C++ interface of lumalloc: liblumalloc.so and liblumalloc.a.
 *
 * Link with -llumalloc, link liblumalloc.a, or run any program with LD_PRELOAD=liblumalloc.so.
 *
 *   Standard family    malloc calloc realloc reallocarray free cfree free_sized free_aligned_sized
 *                      posix_memalign aligned_alloc memalign valloc pvalloc malloc_usable_size
 *   As in glibc        malloc_trim mallinfo mallinfo2 mallopt malloc_stats malloc_info
 *   As in jemalloc(3)  mallocx rallocx xallocx sallocx dallocx sdallocx nallocx
 *                      mallctl mallctlnametomib mallctlbymib malloc_stats_print
 *                      malloc_conf malloc_conf_2_conf_harder malloc_message, extent_hooks_t
 *   lumalloc's own     lumalloc_walk lumalloc_map lumalloc_map_at
 *                      lumalloc_monitor_start lumalloc_monitor_stop
 *   C++                operator new and operator delete, all forms (declared by <new>), which call
 *                      those of the program that C++ names for them, if it has its own; a static
 *                      program that uses little else of libstdc++ needs
 *                      -Wl,-u,_ZSt17__throw_bad_allocv for std::bad_alloc; a C++ runtime that is
 *                      linked into a program or module by -static-libstdc++ is not found, and the
 *                      process aborts instead
 *
 * Sizes are bytes. Unless it says otherwise, a function that finds no memory, or is asked for more
 * than PTRDIFF_MAX bytes, answers NULL and sets errno to ENOMEM (with the option xmalloc:true it
 * prints a message and aborts instead); success leaves errno alone. All functions may be called
 * from any thread; none from a signal handler, nor fork() from one that interrupted such a
 * function. A pointer that is not a live block of this library ends the process with a message as
 * soon as it is noticed.
 *
 * Works with C89 to C23 and every C++; may be included before or after <stdlib.h> and <malloc.h>.
 */
#ifndef LUMALLOC_H_
#define LUMALLOC_H_

#include <limits.h>
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define LUMALLOC_VERSION "0.1.0"
#define LUMALLOC_VERSION_MAJOR 0
#define LUMALLOC_VERSION_MINOR 1
#define LUMALLOC_VERSION_PATCH 0

/* The C library declares its functions as never throwing; C++ wants every declaration to agree. */
#if !defined(__cplusplus)
#  define LUMALLOC_NOTHROW
#elif __cplusplus >= 201103L
#  define LUMALLOC_NOTHROW noexcept(true)
#else
#  define LUMALLOC_NOTHROW throw()
#endif

#if defined(__GNUC__)
#  define LUMALLOC_ATTRIBUTE(list) __attribute__(list)
#else
#  define LUMALLOC_ATTRIBUTE(list)
#endif
/* The answer aliases nothing. */
#define LUMALLOC_FRESH LUMALLOC_ATTRIBUTE((__malloc__))
/* The size is this argument, or the product of these two. */
#define LUMALLOC_SIZE(argument) LUMALLOC_ATTRIBUTE((__alloc_size__(argument)))
#define LUMALLOC_SIZE2(a, b) LUMALLOC_ATTRIBUTE((__alloc_size__(a, b)))

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------------
 * Standard family. <stdlib.h> and <malloc.h> declare malloc, calloc, realloc, free, memalign,
 * valloc, pvalloc, malloc_usable_size; here are those that a language level may hide.
 *
 *   malloc(size)           malloc(0) is a unique pointer
 *   calloc(count, size)    zero bytes; ENOMEM when the product overflows
 *   realloc(ptr, size)     realloc(NULL, size) is malloc(size); realloc(ptr, 0) frees and answers
 *                          NULL, errno unchanged (option zero_realloc: free, alloc or abort); when
 *                          there is no memory the block stays as it was
 *   free(ptr)              NULL is allowed; errno stays as it was
 *   memalign(align, size)  as aligned_alloc
 *   valloc(size)           aligned to the system's page
 *   pvalloc(size)          valloc of whole pages, at least one
 *   malloc_usable_size(ptr)  the real size of the block; 0 for NULL
 * ---------------------------------------------------------------------------------------------- */

/*
 * A block whose address is a multiple of `alignment`, stored at *memptr. (POSIX)
 * Returns 0; EINVAL when the alignment is no power of two or smaller than sizeof(void *); ENOMEM.
 * On failure *memptr and errno stay as they were.
 */
int(posix_memalign)(void **memptr, size_t alignment, size_t size) LUMALLOC_NOTHROW;

/*
 * A block whose address is a multiple of `alignment`, which is any power of two; `size` need not be
 * a multiple of it. (C11, as C17 has it) NULL and EINVAL when the alignment is no power of two.
 */
void *(aligned_alloc)(size_t alignment, size_t size) LUMALLOC_NOTHROW LUMALLOC_FRESH LUMALLOC_SIZE(2);

/* realloc(ptr, count * size); ENOMEM when the product overflows. (POSIX 2024) */
void *reallocarray(void *ptr, size_t count, size_t size) LUMALLOC_NOTHROW LUMALLOC_SIZE2(2, 3);

/*
 * free(ptr) for a block of malloc, calloc or realloc whose requested size the caller knows, and
 * which is checked. NULL is allowed. (C23)
 */
void free_sized(void *ptr, size_t size) LUMALLOC_NOTHROW;

/* The same for a block of aligned_alloc(alignment, size). (C23) */
void free_aligned_sized(void *ptr, size_t alignment, size_t size) LUMALLOC_NOTHROW;

/* free(ptr). The parentheses here and above keep macros of vmalloc.h away. (SunOS) */
void (cfree)(void *ptr) LUMALLOC_NOTHROW;

/* ------------------------------------------------------------------------------------------------
 * As in glibc; declared by <malloc.h>.
 *
 *   malloc_trim(pad)     gives all unused pages back; 1 when fewer pages are resident afterwards
 *   mallinfo2()          bytes: arena mapped; uordblks in blocks of the program; fordblks held
 *                        without such a block; keepcost what malloc_trim could give back;
 *                        ordblks: open arenas; the other fields are 0
 *   mallinfo()           the same in ints; what does not fit reads INT_MAX
 *   mallopt(what, value) 1 for a parameter that glibc knows, 0 for others; none has an effect
 *   malloc_stats()       the totals, to standard error or malloc_message
 *   malloc_info(0, file) the totals as XML; -1 and EINVAL when the first argument is not 0
 * ---------------------------------------------------------------------------------------------- */

/* ------------------------------------------------------------------------------------------------
 * Allocation with flags. (jemalloc(3)) The flags are combined by `|`.
 * ---------------------------------------------------------------------------------------------- */

/* Align to 2^la bytes. */
#define MALLOCX_LG_ALIGN(la) ((int)(la))
/* Align to `a` bytes, a power of two. */
#if defined(__GNUC__)
#  define MALLOCX_ALIGN(a) ((int)(__builtin_ffsl((long)(a)) - 1))
#else
#  include <strings.h>
#  define MALLOCX_ALIGN(a) \
    ((int)(((size_t)(a) < (size_t)INT_MAX) ? ffs((int)(a)) - 1 \
                                           : ffs((int)(((size_t)(a)) >> 32)) + 31))
#endif
/* All usable bytes are zero; for rallocx and xallocx those behind the old usable size. */
#define MALLOCX_ZERO ((int)0x40)
/* The explicit thread cache `tc`, which "tcache.create" answered. */
#define MALLOCX_TCACHE(tc) ((int)(((tc) + 2) << 8))
/* Bypass the thread's cache. */
#define MALLOCX_TCACHE_NONE MALLOCX_TCACHE(-1)
/* The arena with index `a`, bypassing the thread's cache. */
#define MALLOCX_ARENA(a) ((int)(((unsigned)(a) + 1u) << 20))

/* Index that means all arenas in names such as "arena.4096.purge"; plain digits, so that the
 * preprocessor can put it into a name. */
#define MALLCTL_ARENAS_ALL 4096
/* Index that means all destroyed arenas in "stats.arenas.<i>". */
#define MALLCTL_ARENAS_DESTROYED 4097

/* At least `size` bytes. NULL when there is no memory or no such arena. */
void *mallocx(size_t size, int flags) LUMALLOC_NOTHROW LUMALLOC_FRESH LUMALLOC_SIZE(1);

/* Resizes, perhaps moving. NULL when there is no memory: the block stays as it was. */
void *rallocx(void *ptr, size_t size, int flags) LUMALLOC_NOTHROW LUMALLOC_SIZE(2);

/*
 * Resizes in place to at least `size` bytes, if possible to `size + extra`. Returns the size that
 * the block has afterwards; less than `size` means that it could not grow.
 */
size_t xallocx(void *ptr, size_t size, size_t extra, int flags) LUMALLOC_NOTHROW;

/* The real size of the block, in bytes. */
size_t sallocx(const void *ptr, int flags) LUMALLOC_NOTHROW;

/* Frees. */
void dallocx(void *ptr, int flags) LUMALLOC_NOTHROW;

/*
 * Frees a block whose size the caller knows: anything from the requested size to the real one. The
 * alignment that was asked for, if any, must be in the flags.
 */
void sdallocx(void *ptr, size_t size, int flags) LUMALLOC_NOTHROW;

/* The real size that mallocx(size, flags) would give; 0 beyond the largest size or alignment. */
size_t nallocx(size_t size, int flags) LUMALLOC_NOTHROW;

/* ------------------------------------------------------------------------------------------------
 * Extent hooks: where an arena's memory comes from. (jemalloc(3), "arena.<i>.extent_hooks")
 *
 * An extent is a run of pages. A hook that answers bool answers false when it did as asked; true
 * refuses, and the library goes on without. Hooks of NULL refuse always; alloc cannot be NULL. The
 * table must stay valid as long as the arena lives. A hook is called from whatever thread needs it
 * and may allocate.
 * ---------------------------------------------------------------------------------------------- */
typedef struct extent_hooks_s extent_hooks_t;

/* Memory of `size` bytes at a multiple of `alignment`, at `new_addr` if that is not NULL; NULL when
 * there is none. *zero and *commit: in, whether it must be zeros and backed; out, whether it is. */
typedef void *(extent_alloc_t)(extent_hooks_t *extent_hooks, void *new_addr, size_t size,
                               size_t alignment, bool *zero, bool *commit, unsigned arena_ind);
/* Gives an extent back; true: it stays the arena's. */
typedef bool (extent_dalloc_t)(extent_hooks_t *extent_hooks, void *addr, size_t size,
                               bool committed, unsigned arena_ind);
/* Gives an extent back for good, when its arena is destroyed. */
typedef void (extent_destroy_t)(extent_hooks_t *extent_hooks, void *addr, size_t size,
                                bool committed, unsigned arena_ind);
/* Backs `length` bytes at `offset` with memory of zeros; true: out of memory. */
typedef bool (extent_commit_t)(extent_hooks_t *extent_hooks, void *addr, size_t size,
                               size_t offset, size_t length, unsigned arena_ind);
/* Takes the memory behind a range away; it is committed before it is used again. */
typedef bool (extent_decommit_t)(extent_hooks_t *extent_hooks, void *addr, size_t size,
                                 size_t offset, size_t length, unsigned arena_ind);
/* Lets the contents of a range go: at some time (purge_lazy), or at once, leaving zeros
 * (purge_forced). */
typedef bool (extent_purge_t)(extent_hooks_t *extent_hooks, void *addr, size_t size,
                              size_t offset, size_t length, unsigned arena_ind);
/* May this extent be used in two parts, which are given back separately? */
typedef bool (extent_split_t)(extent_hooks_t *extent_hooks, void *addr, size_t size,
                              size_t size_a, size_t size_b, bool committed, unsigned arena_ind);
/* May these two neighbours be used as one? */
typedef bool (extent_merge_t)(extent_hooks_t *extent_hooks, void *addr_a, size_t size_a,
                              void *addr_b, size_t size_b, bool committed, unsigned arena_ind);

struct extent_hooks_s {
  extent_alloc_t *alloc;
  extent_dalloc_t *dalloc;
  extent_destroy_t *destroy;
  extent_commit_t *commit;
  extent_decommit_t *decommit;
  extent_purge_t *purge_lazy;
  extent_purge_t *purge_forced;
  extent_split_t *split;
  extent_merge_t *merge;
};

/* ------------------------------------------------------------------------------------------------
 * The namespace. (jemalloc(3)) These return 0 or an error number and leave errno alone.
 *
 * Every statistic and every setting has a name. All of them, with type, access, unit and meaning,
 * are listed in lumalloc(3), and by the namespace itself: "ctl.names" answers a text of them all,
 * and "ctl.help", "ctl.type", "ctl.access", "ctl.unit" tell of the name that comes in by newp. Those
 * that are wanted most:
 *
 *   version              const char *  r-   version of this library
 *   epoch                uint64_t      rw   any write takes a new snapshot for stats.*
 *   stats.allocated      size_t        r-   bytes in blocks that the program holds
 *   stats.active         size_t        r-   bytes in pages with such blocks
 *   stats.resident       size_t        r-   bytes in physical pages, at most
 *   stats.rss.*                        r-   where the memory is, bytes by their place
 *   stats.arenas.<i>.*                 r-   the same by arena, bin, size class and lock
 *   opt.*                              r-   the options as they were at start
 *   config.effective     const char *  r-   all of them, as an option string
 *   config.ignored       const char *  r-   what was ignored, with its source
 *   background_thread    bool          rw   whether a thread of the library purges unused pages, so
 *                                           that an idle process shrinks; true starts it (EAGAIN
 *                                           and a message where that is refused), false stops it
 *                                           and waits; false in a child of fork
 *   background_thread_auto bool        rw   whether a temporary thread purges when use has fallen
 *                                           far; writing false to background_thread turns this off
 *                                           too
 *   arena.<i>.purge      void          --   gives unused pages back; 4096, or arenas.narenas: all
 *   arena.<i>.dirty_decay_ms  ssize_t  rw   milliseconds until unused pages go back; -1: never
 *   arenas.create        unsigned      rw   makes an arena, with the hooks given by newp if any
 *   thread.arena         unsigned      rw   the arena that this thread allocates from
 *   thread.tcache.flush  void          --   gives this thread's cached blocks back
 *   thread.idle          void          --   this thread will do nothing for long: its cache keeps
 *                                           neither blocks nor slabs
 * ---------------------------------------------------------------------------------------------- */

/*
 * Reads the key `name` into oldp and *oldlenp, writes newp and newlen to it, or triggers it. Pass
 * NULL and NULL to read nothing, NULL and 0 to write nothing. Returns
 *   ENOENT  no such key
 *   EPERM   a write to what can only be read, or arguments to an action
 *   EINVAL  a length that is not the value's; of an old value as much is copied as fits, and
 *           *oldlenp says how much
 *   EBUSY   limit.hard below what is held; monitor.start, prof.log_start or mprof.restart during a
 *           recording; vm.region.<i>.* during a call of the region
 *   ENOMEM  no memory for limit.callback, monitor.start or experimental.hooks.allocated and .freed
 *   EAGAIN, EFAULT  the key could not do it
 */
int mallctl(const char *name, void *oldp, size_t *oldlenp, void *newp, size_t newlen)
    LUMALLOC_NOTHROW;

/*
 * Translates a name into numbers, of which integer components stay what they are, so that an index
 * can be replaced. *miblenp: the room in mibp, then how many components were translated; with less
 * room than the name has components, its beginning. Returns ENOENT when there is no such name.
 */
int mallctlnametomib(const char *name, size_t *mibp, size_t *miblenp) LUMALLOC_NOTHROW;

/*
 * As mallctl, for a key named by numbers. ENOENT also when the numbers end before a key or go on
 * past it.
 */
int mallctlbymib(const size_t *mib, size_t miblen, void *oldp, size_t *oldlenp, void *newp,
                 size_t newlen) LUMALLOC_NOTHROW;

/*
 * Takes a new snapshot of the statistics and writes it through write_cb, in pieces, or through
 * malloc_message when write_cb is NULL: for people, or as JSON when `opts` (may be NULL) contains
 * J. Other letters leave parts out: g what never changes, m the merged arenas, d the destroyed
 * ones, a the single ones, b bins, l large classes, x locks, e unused extents, w (lumalloc's own)
 * where the memory is and what work was done; h is accepted; s (lumalloc's own) prints the last
 * snapshot again; the rest is ignored. No lock is held while write_cb runs: it may allocate and use
 * mallctl.
 */
void malloc_stats_print(void (*write_cb)(void *cbopaque, const char *s), void *cbopaque,
                        const char *opts) LUMALLOC_NOTHROW;

/* ------------------------------------------------------------------------------------------------
 * The profile of allocations. (mprof(1)) With the option mprof:true each allocation is counted at
 * its stack, and the counts are written to mprof.data when the program exits; `lumalloc mprof` and
 * pprof show them. The child of a fork adds its process number to the name. A call that can do
 * nothing says why on standard error.
 * ---------------------------------------------------------------------------------------------- */

/* Writes the profile after each `count` allocations; 0, as at start: only at exit. */
void set_mprof_autosave(int count) LUMALLOC_NOTHROW;

/* Writes the profile, and ends it. */
void mprof_stop(void) LUMALLOC_NOTHROW;

/*
 * After mprof_stop, begins a profile of what is allocated from now on. It is written to the file of
 * that name, or to standard output when the name is empty or NULL.
 */
void mprof_restart(const char *filename) LUMALLOC_NOTHROW;

/* ------------------------------------------------------------------------------------------------
 * The heap monitor. (lumalloc's own) Each allocation and each free of all threads is written to a
 * file, with its time, thread and stack; `lumalloc events` shows it. These return 0 or an error
 * number and leave errno alone. The child of a fork does not record.
 * ---------------------------------------------------------------------------------------------- */

/*
 * Begins to record, to the file of that name, or for NULL to PREFIX.PID.NUMBER.events with the
 * prefix of heap profiles (prof.prefix). Blocks that are live already are written too. The file has
 * its name once it is whole; until then ".tmp" follows the name. EBUSY: it is being recorded
 * already; EINVAL: the name is empty or too long; ENOMEM; or what open or write said.
 */
int lumalloc_monitor_start(const char *file) LUMALLOC_NOTHROW;

/*
 * Ends the recording. EAGAIN: there is none; or what write or rename said first, also of events that
 * were dropped while it recorded.
 */
int lumalloc_monitor_stop(void) LUMALLOC_NOTHROW;

/* ------------------------------------------------------------------------------------------------
 * The heap while the program runs. (lumalloc's own) These return 0 or an error number and leave
 * errno alone. `arena` is an index, or MALLCTL_ARENAS_ALL; ENOENT when there is no such arena, and
 * EINVAL for a callback of NULL. No lock is held while a callback runs: it may allocate, free and
 * use mallctl, but must return: it may not be left by longjmp or by an exception.
 * ---------------------------------------------------------------------------------------------- */

/*
 * Calls `see` with each live block: its address, the bytes that it may hold (as malloc_usable_size;
 * of a block of the hardened tier, what it may hold at most, whatever was requested) and its arena,
 * UINT_MAX for a guarded sample. When `see` answers false, the walk ends with
 * ECANCELED. When no other thread allocates or frees meanwhile, and `see` does not, the blocks are
 * exactly those that were allocated and not freed, without those of 0 bytes. Otherwise a block that
 * is allocated, freed or resized meanwhile may be missing, and one that was just freed may be seen:
 * contents may be read only if it is known that nobody frees the block. The walk itself allocates
 * nothing.
 */
int lumalloc_walk(unsigned arena,
                  bool (*see)(void *cbopaque, void *ptr, size_t size, unsigned arena),
                  void *cbopaque);

/*
 * Writes the runs of pages as JSON through write_cb, in pieces: {"page":4096,"runs":[...],
 * "next":...}. Each run has base, bytes, state, arena, block (bytes of a block), blocks, used, huge
 * (whether huge pages were asked for), purgeable (bytes that a purge gives back), absent (bytes
 * without memory) and oldest_ms (age of the oldest sample of the heap profiler). Runs below `from`
 * are left out; there are `most` at most, or all when it is 0; "next" is the `from` of the rest.
 */
int lumalloc_map(void (*write_cb)(void *cbopaque, const char *s), void *cbopaque, unsigned arena,
                 const void *from, size_t most);

/*
 * Writes the run around `address`, and which sites hold it, as JSON: {"page":4096,"run":{...},
 * "sites":[{"objects":...,"stack":[...]},...],"others":{...}}. "run" is null when there is none, and
 * sites are known of blocks that the heap profiler sampled.
 */
int lumalloc_map_at(void (*write_cb)(void *cbopaque, const char *s), void *cbopaque,
                    const void *address);

/* ------------------------------------------------------------------------------------------------
 * Variables. (jemalloc(3))
 * ---------------------------------------------------------------------------------------------- */

/*
 * Options, "key:value,key:value", read once, at load or at an earlier allocation. Not to be
 * assigned: define it,
 *     const char *malloc_conf = "dirty_decay_ms:1000";
 * and the program's definition replaces the library's. The environment's MALLOC_CONF comes after
 * it.
 */
extern const char *malloc_conf;

/* The same, read last of all: what it says holds whatever the environment says. */
extern const char *malloc_conf_2_conf_harder;

/*
 * Where messages and statistics go when no other callback is given; NULL, as at start, means
 * standard error. May be assigned. It must not allocate.
 */
extern void (*malloc_message)(void *cbopaque, const char *s);

#ifdef __cplusplus
}
#endif

#endif /* LUMALLOC_H_ */
