/* The header alone, with <stdlib.h> and <malloc.h> before it, or after it: -DFIRST, -DLAST. */
#ifdef FIRST
#include <malloc.h>
#include <stdlib.h>
#endif
#include "lumalloc.h"
#ifdef LAST
#include <malloc.h>
#include <stdlib.h>
#endif

/* Each name has the type that the manual says. */
void (*check_free_sized)(void *, size_t) = free_sized;
void (*check_free_aligned_sized)(void *, size_t, size_t) = free_aligned_sized;
int (*check_posix_memalign)(void **, size_t, size_t) = posix_memalign;
void *(*check_aligned_alloc)(size_t, size_t) = aligned_alloc;
void *(*check_reallocarray)(void *, size_t, size_t) = reallocarray;
void *(*check_mallocx)(size_t, int) = mallocx;
void *(*check_rallocx)(void *, size_t, int) = rallocx;
size_t (*check_xallocx)(void *, size_t, size_t, int) = xallocx;
size_t (*check_sallocx)(const void *, int) = sallocx;
void (*check_dallocx)(void *, int) = dallocx;
void (*check_sdallocx)(void *, size_t, int) = sdallocx;
size_t (*check_nallocx)(size_t, int) = nallocx;
int (*check_mallctl)(const char *, void *, size_t *, void *, size_t) = mallctl;
int (*check_mallctlnametomib)(const char *, size_t *, size_t *) = mallctlnametomib;
int (*check_mallctlbymib)(const size_t *, size_t, void *, size_t *, void *, size_t) = mallctlbymib;
void (*check_stats_print)(void (*)(void *, const char *), void *,
                          const char *) = malloc_stats_print;
const char **check_malloc_conf = &malloc_conf;
void (**check_malloc_message)(void *, const char *) = &malloc_message;

int main(void)
{
  void *block = mallocx(10, MALLOCX_ALIGN(64) | MALLOCX_TCACHE_NONE | MALLOCX_ARENA(0));
  sdallocx(block, 10, MALLOCX_LG_ALIGN(6));
  return 0;
}
