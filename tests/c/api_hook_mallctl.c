/* Extent hooks that use the whole namespace and allocate, in every call, while several threads work
 * in their arena and others purge and ask: nobody waits for ever. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>
#include "api_check.h"

enum { THREADS = 4, ROUNDS = 300, BLOCKS = 40 };

static unsigned arena;
static extent_hooks_t *defaults;
static atomic_uint calls[7], printed;
static atomic_bool ending;

static void count_text(void *bytes, const char *text)
{
  *(size_t *)bytes += strlen(text);
}

/* What a hook may do: read and write keys, of its own arena too, and allocate. */
static void meddle(unsigned hook)
{
  uint64_t epoch = 1;
  size_t length, pages, mib[4], used = 4, bytes = 0;
  void *block = malloc(100), *large = malloc(300000);
  CHECK(block != NULL && large != NULL);
  memset(large, 1, 300000);
  CHECK(mallctl("epoch", NULL, NULL, &epoch, sizeof epoch) == 0);
  CHECK(mallctlnametomib("stats.arenas.0.pactive", mib, &used) == 0);
  mib[2] = arena;
  length = sizeof pages;
  /* While it is destroyed it is there or not. */
  CHECK(mallctlbymib(mib, used, &pages, &length, NULL, 0) == 0 || atomic_load(&ending));
  /* In a hook a thread has no cache at hand. */
  CHECK(mallctl("thread.tcache.flush", NULL, NULL, NULL, 0) == EFAULT);
  CHECK(mallctl("arena.0.decay", NULL, NULL, NULL, 0) == 0);
  if (atomic_fetch_add(&calls[hook], 1) % 100 == 0) {
    malloc_stats_print(count_text, &bytes, "");
    CHECK(bytes > 1000);
    atomic_fetch_add(&printed, 1);
  }
  free(large);
  free(block);
}

static void *alloc(extent_hooks_t *hooks, void *addr, size_t size, size_t alignment, bool *zero,
                   bool *commit, unsigned index)
{
  (void)hooks;
  meddle(0);
  return defaults->alloc(defaults, addr, size, alignment, zero, commit, index);
}

static bool dalloc(extent_hooks_t *hooks, void *addr, size_t size, bool committed, unsigned index)
{
  (void)hooks;
  meddle(1);
  return defaults->dalloc(defaults, addr, size, committed, index);
}

static void destroy(extent_hooks_t *hooks, void *addr, size_t size, bool committed, unsigned index)
{
  (void)hooks;
  meddle(2);
  defaults->destroy(defaults, addr, size, committed, index);
}

static bool purge_lazy(extent_hooks_t *hooks, void *addr, size_t size, size_t offset, size_t length,
                       unsigned index)
{
  (void)hooks;
  meddle(3);
  return defaults->purge_lazy(defaults, addr, size, offset, length, index);
}

static bool purge_forced(extent_hooks_t *hooks, void *addr, size_t size, size_t offset,
                         size_t length, unsigned index)
{
  (void)hooks;
  meddle(4);
  return defaults->purge_forced(defaults, addr, size, offset, length, index);
}

static bool split(extent_hooks_t *hooks, void *addr, size_t size, size_t size_a, size_t size_b,
                  bool committed, unsigned index)
{
  (void)hooks;
  meddle(5);
  return defaults->split(defaults, addr, size, size_a, size_b, committed, index);
}

static bool merge(extent_hooks_t *hooks, void *a, size_t size_a, void *b, size_t size_b,
                  bool committed, unsigned index)
{
  (void)hooks;
  meddle(6);
  return defaults->merge(defaults, a, size_a, b, size_b, committed, index);
}

static extent_hooks_t meddling = {
  alloc, dalloc, destroy, NULL, NULL, purge_lazy, purge_forced, split, merge,
};

static void act(const char *action)
{
  size_t mib[3], used = 3;
  char name[40];
  snprintf(name, sizeof name, "arena.0.%s", action);
  CHECK(mallctlnametomib(name, mib, &used) == 0);
  mib[1] = arena;
  CHECK(mallctlbymib(mib, used, NULL, NULL, NULL, 0) == 0);
}

static void *work(void *seed)
{
  size_t random = (size_t)seed + 1, round, at, size[BLOCKS];
  void *blocks[BLOCKS];
  for (round = 0; round < ROUNDS; round++) {
    for (at = 0; at < BLOCKS; at++) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      size[at] = at % 8 == 0 ? 1 + (random >> 40) % 400000 : 1 + (random >> 40) % 3000;
      blocks[at] = mallocx(size[at], MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE);
      CHECK(blocks[at] != NULL);
      fill(blocks[at], size[at] < 64 ? size[at] : 64, (unsigned)at);
    }
    for (at = 0; at < BLOCKS; at++) {
      CHECK(is_filled(blocks[at], size[at] < 64 ? size[at] : 64, (unsigned)at));
      dallocx(blocks[at], MALLOCX_TCACHE_NONE);
    }
    if (round % 16 == 0) act("purge");
    if (round % 16 == 8) act("decay");
  }
  return NULL;
}

int main(void)
{
  pthread_t threads[THREADS];
  extent_hooks_t *hooks = &meddling;
  size_t at, length = sizeof defaults;
  alarm(100);
  CHECK(mallctl("arena.0.extent_hooks", &defaults, &length, NULL, 0) == 0);
  length = sizeof arena;
  CHECK(mallctl("arenas.create", &arena, &length, &hooks, sizeof hooks) == 0);
  for (at = 0; at < THREADS; at++)
    CHECK(pthread_create(&threads[at], NULL, work, (void *)at) == 0);
  for (at = 0; at < THREADS; at++) CHECK(pthread_join(threads[at], NULL) == 0);
  atomic_store(&ending, true);
  act("destroy");
  /* Pages that are given back at once are not given back lazily. */
  for (at = 0; at < 7; at++) CHECK(at == 3 || atomic_load(&calls[at]) > 0);
  CHECK(atomic_load(&printed) > 0);
  puts("ok");
  return 0;
}
