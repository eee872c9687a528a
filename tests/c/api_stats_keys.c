/* Does a little of everything, in several threads and an arena of its own that it destroys, and
 * prints the statistics: the argument has the letters. */
#include <pthread.h>
#include "api_check.h"

enum { THREADS = 4, BLOCKS = 3000 };

static void *kept[THREADS][BLOCKS];

static void *work(void *argument)
{
  void **mine = argument;
  size_t at;
  for (at = 0; at < BLOCKS; at++) {
    mine[at] = malloc(1 + at * 37 % 40000);
    memset(mine[at], 1, 1);
    if (at % 3 != 0) {
      free(mine[at]);
      mine[at] = NULL;
    }
  }
  return NULL;
}

/* And makes another one, so that there are several to be merged. */
static void destroy_an_arena(void)
{
  unsigned arena;
  size_t length = sizeof arena, mib[3], used = 3;
  CHECK(mallctl("arenas.create", &arena, &length, NULL, 0) == 0);
  CHECK(mallctl("arenas.create", &arena, &length, NULL, 0) == 0);
  CHECK(mallocx(100, MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE) != NULL);
  CHECK(mallocx(100000, MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE) != NULL);
  CHECK(mallctlnametomib("arena.0.destroy", mib, &used) == 0);
  mib[1] = arena;
  CHECK(mallctlbymib(mib, used, NULL, NULL, NULL, 0) == 0);
}

/* It may allocate and use the namespace: no lock is held. */
static void print(void *opaque, const char *text)
{
  unsigned narenas;
  size_t length = sizeof narenas;
  char *copy = malloc(strlen(text) + 1);
  strcpy(copy, text);
  CHECK(opaque == kept && mallctl("arenas.narenas", &narenas, &length, NULL, 0) == 0);
  CHECK(mallctl("arena.0.purge", NULL, NULL, NULL, 0) == 0);
  fputs(copy, stdout);
  free(copy);
}

int main(int argc, char **argv)
{
  pthread_t threads[THREADS];
  size_t at, block;
  for (at = 0; at < THREADS; at++) CHECK(pthread_create(&threads[at], NULL, work, kept[at]) == 0);
  for (at = 0; at < THREADS; at++) CHECK(pthread_join(threads[at], NULL) == 0);
  destroy_an_arena();
  free(malloc(10 << 20));
  malloc_stats_print(print, kept, argc > 1 ? argv[1] : "");
  for (at = 0; at < THREADS; at++)
    for (block = 0; block < BLOCKS; block++) free(kept[at][block]);
  return 0;
}
