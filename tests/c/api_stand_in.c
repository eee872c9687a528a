/*
 * Stands in for another allocator's library (built with -shared): a program is linked with this
 * one, and run with lumalloc preloaded. Whatever reaches a function here, a name that lumalloc
 * lacks, ends the program.
 */
void abort(void) __attribute__((__noreturn__));

#define STAND_IN(name) void *name(void); void *name(void) { abort(); }

STAND_IN(aligned_alloc)
STAND_IN(cfree)
STAND_IN(free_aligned_sized)
STAND_IN(free_sized)
STAND_IN(memalign)
STAND_IN(malloc_info)
STAND_IN(malloc_stats)
STAND_IN(malloc_trim)
STAND_IN(malloc_usable_size)
STAND_IN(mallopt)
STAND_IN(posix_memalign)
STAND_IN(pvalloc)
STAND_IN(reallocarray)
STAND_IN(valloc)
STAND_IN(dallocx)
STAND_IN(lumalloc_map)
STAND_IN(lumalloc_map_at)
STAND_IN(lumalloc_walk)
STAND_IN(mallctl)
STAND_IN(mallctlbymib)
STAND_IN(mallctlnametomib)
STAND_IN(malloc_stats_print)
STAND_IN(mallocx)
STAND_IN(nallocx)
STAND_IN(rallocx)
STAND_IN(sallocx)
STAND_IN(sdallocx)
STAND_IN(xallocx)

/* Not NULL, so that a program that reads these instead of lumalloc's notices. */
const char *malloc_conf = "stand-in";
void (*malloc_message)(void *, const char *) = (void (*)(void *, const char *))abort;
