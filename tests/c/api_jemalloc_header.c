/* <jemalloc/jemalloc.h> as a program written for jemalloc uses it: every name, alone or with the
 * prefix (-DJEMALLOC_NO_DEMANGLE), in C and, by way of api_jemalloc_header.cc, in C++. */
#include <jemalloc/jemalloc.h>
#include <stdio.h>
#include <string.h>

#if JEMALLOC_VERSION_MAJOR != 5 || JEMALLOC_VERSION_MINOR != 3 || JEMALLOC_VERSION_BUGFIX != 0 || \
    JEMALLOC_VERSION_NREV != 0
#error "the version"
#endif
#if MALLCTL_ARENAS_ALL != 4096 || MALLCTL_ARENAS_DESTROYED != 4097
#error "the arenas that are none"
#endif

#ifdef JEMALLOC_NO_DEMANGLE
#define NAME(name) je_##name
#else
#define NAME(name) name
#endif
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define CHECK(condition) \
  do { if (!(condition)) { puts("not so: " #condition); return 1; } } while (0)

#ifdef __cplusplus
extern "C" {
#endif
JEMALLOC_EXPORT const char *NAME(malloc_conf) = "narenas:2";
#ifdef __cplusplus
}
#endif

static extent_hooks_t *original;
static unsigned calls;

static void *counted_alloc(extent_hooks_t *hooks, void *addr, size_t size, size_t alignment,
                           bool *zero, bool *commit, unsigned arena)
{
  (void)hooks;
  calls++;
  return original->alloc(original, addr, size, alignment, zero, commit, arena);
}

static JEMALLOC_NOINLINE int check_hooks(void)
{
  extent_hooks_t hooks;
  extent_alloc_t *alloc = counted_alloc;
  extent_dalloc_t *dalloc = NULL;
  extent_destroy_t *destroy = NULL;
  extent_commit_t *commit = NULL;
  extent_decommit_t *decommit = NULL;
  extent_purge_t *purge = NULL;
  extent_split_t *split = NULL;
  extent_merge_t *merge = NULL;
  hooks.alloc = alloc;
  hooks.dalloc = dalloc;
  hooks.destroy = destroy;
  hooks.commit = commit;
  hooks.decommit = decommit;
  hooks.purge_lazy = purge;
  hooks.purge_forced = purge;
  hooks.split = split;
  hooks.merge = merge;
  CHECK(sizeof hooks == 9 * sizeof(void *) && hooks.alloc == counted_alloc && calls == 0);
  return 0;
}

static void swallow(void *opaque, const char *text)
{
  *(size_t *)opaque += strlen(text);
}

int main(void)
{
  size_t written = 0, mib[3], length = 3, size = sizeof(unsigned);
  unsigned narenas = 0;
  void *block = NAME(mallocx)(100, MALLOCX_ALIGN(64) | MALLOCX_ZERO | MALLOCX_TCACHE_NONE);
  CHECK(block != NULL && (uintptr_t)block % 64 == 0);
  CHECK(NAME(sallocx)(block, 0) >= 100 && NAME(nallocx)(100, MALLOCX_LG_ALIGN(6)) >= 100);
  CHECK(NAME(xallocx)(block, 100, 0, MALLOCX_ALIGN(64)) >= 100);
  block = NAME(rallocx)(block, 200, MALLOCX_ALIGN(64));
  NAME(sdallocx)(block, 200, MALLOCX_ALIGN(64));
  NAME(dallocx)(NAME(mallocx)(1, MALLOCX_ARENA(0)), MALLOCX_TCACHE_NONE);
  CHECK(MALLOCX_TCACHE(0) == 0x200 && MALLOCX_ARENA(1) == 0x200000);
  NAME(free)(NAME(realloc)(NAME(calloc)(1, 2), NAME(malloc_usable_size)(NULL) + 3));
  NAME(free)(NAME(aligned_alloc)(16, 32));
  NAME(free)(NAME(memalign)(16, 32));
  NAME(free)(NAME(valloc)(32));
  CHECK(NAME(posix_memalign)(&block, 16, 32) == 0);
  NAME(free)(block);

  CHECK(NAME(mallctl)("opt.narenas", &narenas, &size, NULL, 0) == 0 && narenas == 2);
  CHECK(NAME(mallctl)("arena." TEXT(MALLCTL_ARENAS_ALL) ".purge", NULL, NULL, NULL, 0) == 0);
  CHECK(NAME(mallctlnametomib)("arena.0.purge", mib, &length) == 0 && length == 3);
  mib[1] = MALLCTL_ARENAS_ALL;
  CHECK(NAME(mallctlbymib)(mib, length, NULL, NULL, NULL, 0) == 0);
  NAME(malloc_stats_print)(swallow, &written, "J");
  CHECK(written > 100 && NAME(malloc_message) == NULL && LG_SIZEOF_PTR == 3);
  CHECK(strncmp(JEMALLOC_VERSION, "5.3.0-0-g" JEMALLOC_VERSION_GID, 9) == 0);
  if (check_hooks() != 0) return 1;
  puts("ok");
  return 0;
}
