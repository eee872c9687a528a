/*
 * jemalloc/jemalloc.h - jemalloc's header over lumalloc, for programs that include this name.
 *
 * What jemalloc 5.3 declares without a prefix is here: the standard family, the *allocx family,
 * mallctl, malloc_stats_print, malloc_conf, malloc_message, the MALLOCX_* and MALLCTL_* macros,
 * extent_hooks_t. All of it is documented in <lumalloc.h>, which this header includes, and in
 * lumalloc(3). What a program needs besides is the library itself: -llumalloc, or -ljemalloc where
 * lumalloc was installed with `capi/install.sh --as-jemalloc`.
 *
 * Different from a jemalloc of one's own:
 *   - mallctl("version") answers lumalloc's version; JEMALLOC_VERSION below is the jemalloc whose
 *     interface this is, which is what programs ask the preprocessor for.
 *   - There are no names with a prefix: with JEMALLOC_NO_DEMANGLE or JEMALLOC_MANGLE, je_malloc and
 *     the others are macros for the names without it; JEMALLOC_NO_RENAME is an error.
 *   - smallocx is not there: jemalloc has it in experimental builds only.
 *
 * Works with C89 to C23 and every C++. Source: jemalloc(3).
 */
#ifndef JEMALLOC_H_
#define JEMALLOC_H_

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <strings.h>

#include "../lumalloc.h"

#define JEMALLOC_VERSION "5.3.0-0-g0000000000000000000000000000000000000000"
#define JEMALLOC_VERSION_MAJOR 5
#define JEMALLOC_VERSION_MINOR 3
#define JEMALLOC_VERSION_BUGFIX 0
#define JEMALLOC_VERSION_NREV 0
#define JEMALLOC_VERSION_GID "0000000000000000000000000000000000000000"
#define JEMALLOC_VERSION_GID_IDENT 0000000000000000000000000000000000000000

/* sizeof(void *) is 2^LG_SIZEOF_PTR. */
#if UINTPTR_MAX > 0xffffffffu
#  define LG_SIZEOF_PTR 3
#else
#  define LG_SIZEOF_PTR 2
#endif

/* ------------------------------------------------------------------------------------------------
 * What jemalloc's own declarations are made with; programs use them around a malloc_conf of theirs.
 * ---------------------------------------------------------------------------------------------- */
#define JEMALLOC_OVERRIDE_MEMALIGN
#define JEMALLOC_OVERRIDE_VALLOC
#define JEMALLOC_USABLE_SIZE_CONST
#define JEMALLOC_USE_CXX_THROW
#define JEMALLOC_CXX_THROW LUMALLOC_NOTHROW
#if defined(__GNUC__)
#  define JEMALLOC_HAVE_ATTR
#  define JEMALLOC_HAVE_ATTR_ALLOC_SIZE
#  define JEMALLOC_ATTR(s) __attribute__((s))
#else
#  define JEMALLOC_ATTR(s)
#endif
#define JEMALLOC_ALIGNED(s) JEMALLOC_ATTR(aligned(s))
#define JEMALLOC_ALLOC_SIZE(s) JEMALLOC_ATTR(alloc_size(s))
#define JEMALLOC_ALLOC_SIZE2(s1, s2) JEMALLOC_ATTR(alloc_size(s1, s2))
#ifndef JEMALLOC_EXPORT
#  define JEMALLOC_EXPORT JEMALLOC_ATTR(visibility("default"))
#endif
#define JEMALLOC_NOINLINE JEMALLOC_ATTR(noinline)
#define JEMALLOC_NOTHROW JEMALLOC_ATTR(nothrow)
#define JEMALLOC_SYS_NOTHROW JEMALLOC_NOTHROW
#define JEMALLOC_SECTION(s) JEMALLOC_ATTR(section(s))
#define JEMALLOC_COLD JEMALLOC_ATTR(cold)
#define JEMALLOC_RESTRICT_RETURN
#define JEMALLOC_ALLOCATOR

/* ------------------------------------------------------------------------------------------------
 * The names with a prefix, as macros, for programs that ask for them.
 * ---------------------------------------------------------------------------------------------- */
#ifdef JEMALLOC_NO_RENAME
#  error "JEMALLOC_NO_RENAME: lumalloc exports no names with the prefix je_"
#endif
#if defined(JEMALLOC_MANGLE) && !defined(JEMALLOC_NO_DEMANGLE)
#  define JEMALLOC_NO_DEMANGLE
#endif
#ifdef JEMALLOC_NO_DEMANGLE
#  define je_aligned_alloc aligned_alloc
#  define je_calloc calloc
#  define je_dallocx dallocx
#  define je_free free
#  define je_free_aligned_sized free_aligned_sized
#  define je_free_sized free_sized
#  define je_mallctl mallctl
#  define je_mallctlbymib mallctlbymib
#  define je_mallctlnametomib mallctlnametomib
#  define je_malloc malloc
#  define je_malloc_conf malloc_conf
#  define je_malloc_conf_2_conf_harder malloc_conf_2_conf_harder
#  define je_malloc_message malloc_message
#  define je_malloc_stats_print malloc_stats_print
#  define je_malloc_usable_size malloc_usable_size
#  define je_mallocx mallocx
#  define je_memalign memalign
#  define je_nallocx nallocx
#  define je_posix_memalign posix_memalign
#  define je_pvalloc pvalloc
#  define je_rallocx rallocx
#  define je_realloc realloc
#  define je_sallocx sallocx
#  define je_sdallocx sdallocx
#  define je_valloc valloc
#  define je_xallocx xallocx
#endif

#endif /* JEMALLOC_H_ */
