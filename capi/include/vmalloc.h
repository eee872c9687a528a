/*
 * vmalloc.h - regions of memory, as vmalloc(3) describes them: part of liblumalloc.so and liblumalloc.a.
 *
 *   Regions        vmopen vmclose vmclear vmcompact vmset vmdisc; Vmheap
 *   Methods        Vmbest Vmlast Vmpool Vmdebug Vmprofile
 *   Disciplines    Vmdcsystem Vmdcsbrk Vmdcheap, or a Vmdisc_t of the program
 *   Allocation     vmalloc vmalign vmresize vmfree vmnewof vmoldof vmgetmem vmstrdup
 *   Information    vmregion vmsegment vmwalk vmaddr vmsize vmstat vmbusy vmlocked vmdata vmname
 *   Tracing        vmtrace vmtracetimed vmtrbusy
 *   Debugging      vmdebug vmdbcheck vmdbwatch
 *   Profiling      vmprofile
 *   Shared memory  vmmopen vmmopenat vmmvalue vmmset vmmcleanup vmmrelease vmmaddress
 *   malloc         Vmregion setregmax cfree
 *
 * Sizes are bytes. A function that finds no memory, or is asked for more than PTRDIFF_MAX bytes,
 * returns NULL and sets errno to ENOMEM. A region of NULL is refused: the function returns NULL or -1,
 * as it does on any other failure, unless its description names a meaning for NULL. errno is then EINVAL
 * for arguments that cannot be, and EBUSY for a region that is inside another call. None of the
 * functions may be called from a signal handler. A region that was opened with VM_SHARE may be used by
 * several threads at once; any other belongs to one thread at a time, and a call to a region that is
 * inside another call fails.
 *
 * "1998" and "2011" name the two manual pages of vmalloc(3); what has no source is in both. "2011
 * library" is in the library of that year and in neither page. "lumalloc" marks what is new. Layouts
 * and numbers are those of the 2011 library.
 *
 * Works with gnu89 to C23 and every C++.
 */
#ifndef VMALLOC_H_
#define VMALLOC_H_

#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* The version of the original library that has this interface. */
#define VMALLOC_VERSION 20110808L

#ifndef Void_t
#  define Void_t void
#endif

/* <stdlib.h> declares its functions as never throwing; C++ wants every declaration to agree. */
#if !defined(__cplusplus)
#  define VMALLOC_NOTHROW
#elif __cplusplus >= 201103L
#  define VMALLOC_NOTHROW noexcept(true)
#else
#  define VMALLOC_NOTHROW throw()
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------------
 * Types.
 * ---------------------------------------------------------------------------------------------- */

typedef struct _vmalloc_s Vmalloc_t;
typedef struct _vmstat_s Vmstat_t;
typedef struct _vmdisc_s Vmdisc_t;
typedef struct _vmethod_s Vmethod_t;
/* The state of a region; only the library looks inside. */
typedef struct _vmdata_s Vmdata_t;

/*
 * Obtains, resizes and releases segments of memory for a region.
 *
 *   csz 0             a new segment of nsz bytes
 *   nsz 0             release the segment at addr
 *   csz and nsz       make the segment at addr nsz bytes long, without moving it
 *
 * Returns the segment's address, or NULL: it could not. If nsz is larger than csz and the segment
 * cannot grow, the function may return a new segment of nsz - csz bytes instead; the old one then
 * stays as it is. A segment whose release was refused stays in the region. An address need not be
 * aligned. The function must not use the region that it is called for, and must return: if an exception
 * or longjmp leaves it, the region stays inside that call for ever. It may not open or close a region,
 * nor call vmregion, vmwalk(NULL, ...) or vmstat(NULL, ...): these wait for a thread that forks, which
 * may wait until the call is over.
 */
typedef void *(*Vmemory_f)(Vmalloc_t *vm, void *addr, size_t csz, size_t nsz, Vmdisc_t *disc);

/*
 * Is told of an event, one of VM_OPEN and so on; what it returns has a meaning for each event. An exception
 * or longjmp may leave it: no lock is held. In VM_ENDOPEN and VM_ENDCLOSE memory is lost then.
 */
typedef int (*Vmexcept_f)(Vmalloc_t *vm, int type, void *obj, Vmdisc_t *disc);

/*
 * A discipline: where a region's memory comes from. A program may define its own, also at the start of
 * a larger structure. It must exist as long as a region uses it.
 */
struct _vmdisc_s {
  Vmemory_f memoryf;
  /* NULL: no event is announced. */
  Vmexcept_f exceptf;
  /* If it is not 0, csz and nsz are multiples of it; it need not be a power of two. */
  size_t round;
  /* The size of the structure that this is the start of, or 0. (2011 library) */
  size_t size;
};

/*
 * A method: how blocks are cut from segments. Programs use Vmbest and its like, and do not define
 * methods. `local` is 0 in calls by a program.
 */
struct _vmethod_s {
  void *(*allocf)(Vmalloc_t *vm, size_t size, int local);
  void *(*resizef)(Vmalloc_t *vm, void *addr, size_t size, int type, int local);
  int (*freef)(Vmalloc_t *vm, void *addr, int local);
  long (*addrf)(Vmalloc_t *vm, void *addr, int local);
  long (*sizef)(Vmalloc_t *vm, void *addr, int local);
  int (*compactf)(Vmalloc_t *vm, int local);
  void *(*alignf)(Vmalloc_t *vm, size_t size, size_t align, int local);
  /* One of VM_MTBEST and so on. */
  unsigned short meth;
};

/* A region. The members may be read; functions change them. */
struct _vmalloc_s {
  Vmethod_t meth;
  /* The library writes none of these three: the position of a call is recorded for each thread. */
  char *file;
  int line;
  char *func;
  Vmdisc_t *disc;
  Vmdata_t *data;
  Vmalloc_t *next;
};

/* What vmstat finds. Bookkeeping is counted in extent only. The last five are of 2011. */
struct _vmstat_s {
  /* Allocated and free blocks. */
  int n_busy;
  int n_free;
  /* Bytes in them. */
  size_t s_busy;
  size_t s_free;
  /* Bytes in the largest of them. */
  size_t m_busy;
  size_t m_free;
  /* Segments, and their bytes. */
  int n_seg;
  size_t extent;
  /* Regions that malloc uses. The next four are 0 for a single region. */
  int n_region;
  /* Calls that found a region at once, or got a new one. */
  int n_open;
  /* Calls that waited for a region. */
  int n_lock;
  /* Calls that found a region in use and searched. */
  int n_probe;
  /* Flags and method of the region, as vmset returns them. (2011 library) */
  int mode;
};

/* ------------------------------------------------------------------------------------------------
 * Flags for vmopen and vmset, combined by `|`.
 * ---------------------------------------------------------------------------------------------- */

/* No effect: locks and checks are always on. (1998; 2011 library) */
#define VM_TRUST 0000000
/* Write a line for each successful allocation event to the file of vmtrace. */
#define VM_TRACE 0000001
/* Call vmdbcheck at the start of each vmalloc, vmresize and vmfree. */
#define VM_DBCHECK 0000002
/* Call abort after each warning of Vmdebug. */
#define VM_DBABORT 0000004
/*
 * Threads and processes use the region at the same time. If a process ends inside a call, the next call
 * of another one finds anew what is free. A region with Vmlast or Vmpool can only be cleared and closed
 * then: other calls fail with EBUSY. (2011)
 */
#define VM_SHARE 0000010
/* Returned by vmset only: the handle lies in memory of the discipline. (2011 library) */
#define VM_MEMORYF 0000020
/* The flags that vmset changes. (2011 library) */
#define VM_FLAGS 0000017
/* For vmopen only: announce VM_ALLOC, VM_FREE and VM_RESIZE to the discipline. (lumalloc) */
#define VM_ANNOUNCE 0100000

/* The method, in what vmset returns. */
#define VM_MTBEST 0000100
#define VM_MTPOOL 0000200
#define VM_MTLAST 0000400
#define VM_MTDEBUG 0001000
#define VM_MTPROFILE 0002000
/* All of them. (2011 library) */
#define VM_METHODS 0003700

/* ------------------------------------------------------------------------------------------------
 * Events for exceptf. `obj` and the meaning of the returned value r:
 * ---------------------------------------------------------------------------------------------- */

/*
 * A region is being opened. obj: a void ** that points to NULL.
 *   r < 0    vmopen fails
 *   r = 0    go on; if *obj is not NULL any more, the handle is put in memory of the discipline
 *   r > 0    open an earlier region again: *obj is what vmdata returned for it. If it is still open, and
 *            its handle lies in its memory, vmopen fails with EBUSY
 * Here, and in the first call of memoryf, the handle stands for a region without memory: vmdata returns
 * NULL, vmset the method alone, and calls that need the region fail with EBUSY.
 */
#define VM_OPEN 1
/* The region is open. r is ignored. (2011) */
#define VM_ENDOPEN 2
/* The region is being closed. r < 0: vmclose fails; 0: segments are released; > 0: they are left. */
#define VM_CLOSE 3
/* The region is closed. r is ignored. If segments were released, the handle is as in VM_OPEN. (2011) */
#define VM_ENDCLOSE 4
/* vmdisc was called. obj: the new discipline. r = 0: it is taken; otherwise the old one stays. */
#define VM_DISC 5
/*
 * memoryf found no memory. obj: how many bytes were wanted, cast to a pointer. The region is unlocked:
 * exceptf may free blocks.
 *   r > 0    the request is repeated from its start
 *   r = 0    memoryf is called once more
 *   r < 0    the request fails
 */
#define VM_NOMEM 6
/* vmfree or vmresize got obj, which is no allocated block of the region. It fails; r is ignored. (1998) */
#define VM_BADADDR (-1)
/*
 * A block was allocated, freed or resized; the call is about to return, and the region is unlocked.
 * obj: the block's address, in VM_RESIZE the new one. r is ignored. Announced in regions that were
 * opened with VM_ANNOUNCE. (1998, whose numbers were 5, 6, 7)
 */
#define VM_ALLOC 7
#define VM_FREE 8
#define VM_RESIZE 9

/* ------------------------------------------------------------------------------------------------
 * Regions.
 * ---------------------------------------------------------------------------------------------- */

/* A region with Vmbest, Vmdcsystem and VM_SHARE, which is always open. May be assigned. */
extern Vmalloc_t *Vmheap;

/* Opens a region. NULL: an argument or memoryf is NULL, exceptf refused, or there is no memory. */
Vmalloc_t *vmopen(Vmdisc_t *disc, Vmethod_t *meth, int flags);

/*
 * Closes a region, with all its blocks. Segments are released to memoryf, the one that was obtained
 * first as the last. Returns 0; -1 for Vmheap, and when exceptf refuses.
 */
int vmclose(Vmalloc_t *vm);

/* Frees all blocks, and keeps the segments. A pool's block size is free again. Returns 0. */
int vmclear(Vmalloc_t *vm);

/* Releases as much free memory to memoryf as it can. Returns 0. */
int vmcompact(Vmalloc_t *vm);

/*
 * Sets the flags of VM_FLAGS that are in `flags`, or clears them if `on` is 0. Returns all flags as
 * they were before, with the method; vmset(vm, 0, 0) changes nothing. VM_SHARE stays as it is while a
 * call is in the region, and stays set in a region that was stored in Vmregion.
 */
int vmset(Vmalloc_t *vm, int flags, int on);

/*
 * Replaces the discipline, if `disc` is not NULL, has the same memoryf, and exceptf of the old one
 * agrees (VM_DISC). Returns the discipline that the region has afterwards.
 */
Vmdisc_t *vmdisc(Vmalloc_t *vm, Vmdisc_t *disc);

/* ------------------------------------------------------------------------------------------------
 * Methods. The pointers may be assigned.
 * ---------------------------------------------------------------------------------------------- */

/* The smallest free block that suffices. */
extern Vmethod_t *Vmbest;
/* Blocks one behind the other; only the latest can be freed, or all of them. */
extern Vmethod_t *Vmlast;
/* Blocks of one size, which the first allocation sets. */
extern Vmethod_t *Vmpool;

/* ------------------------------------------------------------------------------------------------
 * Disciplines. The pointers, and what they point to, may be assigned.
 * ---------------------------------------------------------------------------------------------- */

/* Pages of the operating system. (2011) */
extern Vmdisc_t *Vmdcsystem;
/* The same pointer. (1998) */
extern Vmdisc_t *Vmdcsbrk;
/* Blocks of Vmheap. */
extern Vmdisc_t *Vmdcheap;

/* ------------------------------------------------------------------------------------------------
 * Allocation. Blocks are aligned for every basic type.
 * ---------------------------------------------------------------------------------------------- */

/* For vmresize: the block may move, and keeps its contents; */
#define VM_RSCOPY 0000001
/* it may move, and then its contents are undefined; */
#define VM_RSMOVE 0000002
/* new bytes are zero: those behind the size that was asked for before, or, of a block of malloc that Vmheap
 * resizes, behind its usable size. */
#define VM_RSZERO 0000004

/* A block of `size` bytes. A size of 0 is a block too, except in Vmpool, which returns NULL. */
void *vmalloc(Vmalloc_t *vm, size_t size);

/*
 * A block whose address is a multiple of `align` and of the usual alignment; `align` need not be a
 * power of two. NULL when size or align is 0, and in Vmpool. In Vmheap, one that is no power of two
 * is looked for among some thousand blocks, so that a large one often ends in NULL.
 */
void *vmalign(Vmalloc_t *vm, size_t size, size_t align);

/*
 * Makes the block `size` bytes long; `type` is 0 or a combination of VM_RSCOPY, VM_RSMOVE, VM_RSZERO.
 * Without VM_RSCOPY and VM_RSMOVE the block does not move. NULL as address: vmalloc(vm, size). Size 0:
 * frees the block and returns NULL. On failure returns NULL, and the block stays as it was.
 */
void *vmresize(Vmalloc_t *vm, void *addr, size_t size, int type);

/*
 * Frees a block. NULL is allowed. Returns 0; -1, after VM_BADADDR, when the address is not that of an
 * allocated block of this region; -1 in Vmlast when it is not the latest block.
 */
int vmfree(Vmalloc_t *vm, void *addr);

/* n * size + extra; SIZE_MAX, which every allocation refuses, when that is too large. (lumalloc) */
size_t vmnewsize(size_t n, size_t size, size_t extra);

/*
 * vmresize to n * sizeof(T) + extra bytes: the block may move, keeps its contents, and new bytes are
 * zero. The type is T *. `extra` is not negative.
 */
#define vmnewof(vm, addr, T, n, extra) \
  ((T *)vmresize((vm), (addr), vmnewsize((n), sizeof(T), (extra)), VM_RSMOVE | VM_RSCOPY | VM_RSZERO))

/* The same, but a block that moves loses its contents, and new bytes are undefined. */
#define vmoldof(vm, addr, T, n, extra) \
  ((T *)vmresize((vm), (addr), vmnewsize((n), sizeof(T), (extra)), VM_RSMOVE))

/*
 * vmgetmem(NULL, NULL, 0)     opens a region with Vmdcheap and Vmbest, and returns it
 * vmgetmem(vm, NULL, 0)       closes the region, and returns NULL
 * vmgetmem(vm, NULL, size)    a block of zeros
 * vmgetmem(vm, addr, 0)       frees the block, and returns NULL
 * vmgetmem(vm, addr, size)    resizes the block, which may move; new bytes are zero
 */
void *vmgetmem(Vmalloc_t *vm, void *addr, size_t size);

/* A copy of the string. NULL for NULL. (2011 library) */
char *vmstrdup(Vmalloc_t *vm, const char *string);

/* ------------------------------------------------------------------------------------------------
 * Information.
 * ---------------------------------------------------------------------------------------------- */

/*
 * The open region that has allocated the block; NULL if there is none. Regions with Vmbest, Vmdebug and
 * Vmprofile are searched, those of other threads too, but not one in which a call stays.
 */
Vmalloc_t *vmregion(void *addr);

/* The start of the region's segment that contains the address, as memoryf returned it, or NULL. */
void *vmsegment(Vmalloc_t *vm, void *addr);

/*
 * Calls walkf(region, segment, size, discipline, handle) for each segment of the region, or of all
 * regions if it is NULL. Ends when walkf returns a negative number, and returns that; otherwise returns
 * 0. (1998 and 2011 print four arguments, without `handle`) Nothing is locked while walkf runs: it may look
 * at regions, open and close them, and wait for other threads, and an exception or longjmp may leave it.
 * Regions that are opened meanwhile are not walked over. For NULL, a region in which a call of another
 * thread stays is left out. No other thread may close a region while walkf looks at it.
 */
int vmwalk(Vmalloc_t *vm, int (*walkf)(Vmalloc_t *vm, void *segment, size_t size, Vmdisc_t *disc, void *handle),
           void *handle);

/* How many bytes the address is behind the start of its block; -1 outside blocks. Vmlast: latest only. */
long vmaddr(Vmalloc_t *vm, void *addr);

/* The size of the block, at least what was asked for; -1 if it is none. Vmlast: latest only. */
long vmsize(Vmalloc_t *vm, void *addr);

/*
 * Fills *st with numbers about the region, or about the heap of malloc if it is NULL; returns 0.
 * If st is NULL, returns whether some call is using the region now: 1 or 0.
 */
int vmstat(Vmalloc_t *vm, Vmstat_t *st);

/* Whether some call is using the region now: 1 or 0. (2011) */
int vmbusy(Vmalloc_t *vm);

/* The same. (2011 library) */
unsigned int vmlocked(Vmalloc_t *vm);

/*
 * Names the region for the keys vm.region.<i>.* of mallctl, metrics and the page; 31 bytes are kept. NULL
 * takes the name away. A region of vmmopen has the name of its file. Returns 0; -1 for NULL and for
 * Vmheap. (lumalloc)
 */
int vmname(Vmalloc_t *vm, const char *name);

/* The state of the region, which VM_OPEN takes to open it again. (2011) */
void *vmdata(Vmalloc_t *vm);

/* ------------------------------------------------------------------------------------------------
 * Tracing. The lines are described in vmalloc(3).
 * ---------------------------------------------------------------------------------------------- */

/* Sets the descriptor that trace lines go to; a negative one ends tracing. Returns the previous, at first -1. */
int vmtrace(int fd);

/*
 * Sets whether trace lines end with a further field, time=SECONDS,tid=THREAD: with nine digits behind the
 * point, since 1970, and the system's number of the thread. Returns whether they did, at first 0. (lumalloc)
 */
int vmtracetimed(int on);

/*
 * Writes a trace line for each allocated block. Returns 0; -1 without a descriptor, and for regions
 * other than Vmbest, Vmdebug and Vmprofile.
 */
int vmtrbusy(Vmalloc_t *vm);

/* ------------------------------------------------------------------------------------------------
 * Debugging. The messages are described in vmalloc(3).
 * ---------------------------------------------------------------------------------------------- */

/* As Vmbest, and finds writes outside blocks, and frees of what is no block. May be assigned. */
extern Vmethod_t *Vmdebug;

/* Sets the descriptor that warnings go to. Returns the previous one, at first 2. */
int vmdebug(int fd);

/* Checks a region with Vmdebug, Vmbest or Vmprofile. Returns how many blocks are corrupt; -1 for other methods. */
int vmdbcheck(Vmalloc_t *vm);

/*
 * Reports each call that allocates, resizes or frees a block at this address from now on. Up to 32
 * addresses are kept: returns the oldest if it had to be dropped, otherwise NULL. NULL drops all.
 * (1998 and 2011 print int)
 */
void *vmdbwatch(void *addr);

/* ------------------------------------------------------------------------------------------------
 * Profiling. The summary is described in vmalloc(3).
 * ---------------------------------------------------------------------------------------------- */

/* As Vmbest, and counts allocations by file, line and region. May be assigned. */
extern Vmethod_t *Vmprofile;

/*
 * Writes a summary for the region, or for all regions with Vmprofile if it is NULL. Returns 0; -1 if
 * the descriptor is negative, or the region has another method. (1998 and 2011 print void)
 */
int vmprofile(Vmalloc_t *vm, int fd);

/* ------------------------------------------------------------------------------------------------
 * Regions in files and in shared memory.
 * ---------------------------------------------------------------------------------------------- */

/* For vmmvalue: return the value; store it; add to it. (2011) */
#define VM_MMGET 0
#define VM_MMSET 1
#define VM_MMADD 2

/*
 * Opens the region that lies in the file (project < 0), or in the shared memory segment of the key
 * ftok(file, project); creates it, with room for at least `size` bytes, if there is none. Its method is
 * Vmbest. All processes have it at the same address. NULL: it cannot be opened (the errno of the system),
 * is no region, or is cut off (EINVAL), something else lies at its address (EADDRINUSE), another program
 * has locked the file by flock (EBUSY), or it cannot be so large (ENOMEM). (2011)
 */
Vmalloc_t *vmmopen(const char *file, int project, ssize_t size);

/*
 * vmmopen of 1998: opens the region that lies in the file, at the address `base` if that is not NULL;
 * the region has room for `round` bytes, and of 256 KiB at least, and grows with the file to 16 GiB.
 * NULL: as vmmopen, and EINVAL if the region lies at another address. (1998)
 */
Vmalloc_t *vmmopenat(const char *file, void *base, size_t round);

/*
 * Finds, stores (VM_MMSET) or increases (VM_MMADD, as a signed long that begins at 0) the value of a
 * key. Returns the value afterwards; NULL when the key has none, and on errors: ENOMEM, or EINVAL for a
 * pool and for Vmheap. Other regions of vmopen have values too. All processes see each change as one
 * step. (2011)
 */
void *vmmvalue(Vmalloc_t *vm, int key, void *value, int op);

/*
 * If `set` is not 0 stores the value, and returns the previous one, or `value` if there was none.
 * Otherwise returns the value of the key, or NULL. (1998)
 */
void *vmmset(Vmalloc_t *vm, int key, void *value, int set);

/*
 * Lets the last vmclose of this process remove the file or the segment. Returns vmdata(vm), or NULL when
 * the region is not one of vmmopen. (2011)
 */
void *vmmcleanup(Vmalloc_t *vm);

/* The same if type > 0; else nothing, because vmclose unmaps the memory anyway. (2011 library) */
void vmmrelease(Vmalloc_t *vm, int type);

/* An address at which `size` bytes can be mapped, far from stacks and libraries. NULL: none. (2011) */
void *vmmaddress(size_t size);

/* ------------------------------------------------------------------------------------------------
 * malloc over regions. <stdlib.h> and <malloc.h> declare the other functions of malloc. The environment
 * variable VMALLOC_OPTIONS chooses method, checks and traces: vmalloc(3).
 * ---------------------------------------------------------------------------------------------- */

/*
 * The region in which malloc, calloc, realloc, operator new and their kin allocate: at first Vmheap. A
 * program may store another one. Each thread then uses it from its next call on that the thread's cache
 * cannot serve, and threads take turns in it, as with VM_SHARE. Blocks are freed to the region that they
 * came from, so the region must stay open until then. Closing the region puts Vmheap back. For a pool,
 * requests that it does not serve go to Vmheap. A discipline's memoryf must not free blocks of this
 * region. A call that the region refuses fails like malloc; free ends the program with a message, unless
 * the method is Vmlast or Vmdebug, or the discipline has an exceptf. Calls that name an arena or a cache
 * (mallocx) stay in the heap. (2011)
 */
extern Vmalloc_t *Vmregion;

/*
 * Sets how many further regions malloc may open for threads that would wait for each other: 64 at
 * first, which is also the most. Other values, and less than are open, change nothing. Returns the
 * previous number. (2011)
 */
int setregmax(int regmax);

/* free(addr). The parentheses keep a macro away. (1998 and 2011 print int) */
void (cfree)(void *addr) VMALLOC_NOTHROW;

/* ------------------------------------------------------------------------------------------------
 * Files and lines. If VMFL is defined before this file is included, calls of vmalloc, vmalign, vmresize,
 * vmfree, vmnewof and vmoldof record where they stand; traces, Vmdebug and Vmprofile show it. In C so do
 * calls of malloc, calloc, realloc, free, cfree, memalign, aligned_alloc, posix_memalign, valloc, pvalloc and
 * strdup, unless VMFL_NOMALLOC is defined too. Include headers that declare functions of these names before
 * this one.
 * ---------------------------------------------------------------------------------------------- */

/*
 * Records a position for the next call of this thread that allocates or frees. The strings are not
 * copied. NULL or an empty string, and a line of 0, mean that it is unknown. (lumalloc)
 */
void vmfileline(const char *file, int line, const char *func);

/*
 * The same for the next call of malloc or its kin. It does nothing as long as malloc allocates in Vmheap
 * without a trace. (lumalloc)
 */
void vmfilelinemalloc(const char *file, int line, const char *func);

#ifdef __cplusplus
}
#endif

#ifdef VMFL

#  ifdef __cplusplus
#    define VMFL_INLINE inline
#  elif defined(__GNUC__)
#    define VMFL_INLINE static __inline__
#  else
#    define VMFL_INLINE static
#  endif

/* Unlike __func__, this is allowed in C89 and outside functions. */
#  if defined(__GNUC__)
#    define VMFL_HERE __FILE__, __LINE__, __builtin_FUNCTION()
#  else
#    define VMFL_HERE __FILE__, __LINE__, NULL
#  endif

/*
 * Arguments may allocate too, and would take the record. Therefore it is made when all are known: in
 * these functions, which the arguments are passed through, or at the end of each argument.
 */
VMFL_INLINE void *vmfl_alloc(Vmalloc_t *vm, size_t size, const char *file, int line, const char *func)
{
  return vmfileline(file, line, func), vmalloc(vm, size);
}

VMFL_INLINE void *vmfl_align(Vmalloc_t *vm, size_t size, size_t align, const char *file, int line, const char *func)
{
  return vmfileline(file, line, func), vmalign(vm, size, align);
}

VMFL_INLINE void *vmfl_resize(Vmalloc_t *vm, void *addr, size_t size, int type, const char *file, int line,
                              const char *func)
{
  return vmfileline(file, line, func), vmresize(vm, addr, size, type);
}

VMFL_INLINE int vmfl_free(Vmalloc_t *vm, void *addr, const char *file, int line, const char *func)
{
  return vmfileline(file, line, func), vmfree(vm, addr);
}

#  define vmalloc(vm, size) vmfl_alloc((vm), (size), VMFL_HERE)
#  define vmalign(vm, size, align) vmfl_align((vm), (size), (align), VMFL_HERE)
#  define vmresize(vm, addr, size, type) vmfl_resize((vm), (addr), (size), (type), VMFL_HERE)
#  define vmfree(vm, addr) vmfl_free((vm), (addr), VMFL_HERE)

/* In C++ these are also names of members, which are declared like functions, and of functions of std. */
#  if !defined(__cplusplus) && !defined(VMFL_NOMALLOC)

/*
 * The names of malloc and its kin stay, so that members of structures may have them too. The record is
 * made at the end of each argument.
 */
VMFL_INLINE size_t vmfl_size(size_t size, const char *file, int line, const char *func)
{
  return vmfilelinemalloc(file, line, func), size;
}

VMFL_INLINE void *vmfl_addr(void *addr, const char *file, int line, const char *func)
{
  return vmfilelinemalloc(file, line, func), addr;
}

VMFL_INLINE const char *vmfl_text(const char *text, const char *file, int line, const char *func)
{
  return vmfilelinemalloc(file, line, func), text;
}

#    define VMFL_SIZE(size) vmfl_size((size), VMFL_HERE)
#    define VMFL_ADDR(addr) vmfl_addr((addr), VMFL_HERE)

#    define malloc(size) malloc(VMFL_SIZE(size))
#    define calloc(n, size) calloc(VMFL_SIZE(n), VMFL_SIZE(size))
#    define realloc(addr, size) realloc(VMFL_ADDR(addr), VMFL_SIZE(size))
#    define free(addr) free(VMFL_ADDR(addr))
#    define cfree(addr) cfree(VMFL_ADDR(addr))
#    define memalign(align, size) memalign(VMFL_SIZE(align), VMFL_SIZE(size))
#    define aligned_alloc(align, size) aligned_alloc(VMFL_SIZE(align), VMFL_SIZE(size))
#    define posix_memalign(place, align, size) \
      posix_memalign((void **)VMFL_ADDR(place), VMFL_SIZE(align), VMFL_SIZE(size))
#    define valloc(size) valloc(VMFL_SIZE(size))
#    define pvalloc(size) pvalloc(VMFL_SIZE(size))
#    undef strdup
#    define strdup(string) strdup(vmfl_text((string), VMFL_HERE))

#  endif /* malloc */

#endif /* VMFL */

#endif /* VMALLOC_H_ */
