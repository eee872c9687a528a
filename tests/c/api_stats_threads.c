/* malloc_stats_print in several threads at once, while others allocate and arenas come and go: each
 * printing is whole. The callback allocates, reads keys and takes new snapshots. */
#include <pthread.h>
#include "api_check.h"

enum { PRINTERS = 3, PRINTINGS = 12, ALLOCATORS = 2, ROOM = 4 << 20 };

static int over; /* atomic: the printers are done */

struct collected {
  char *text;
  size_t used;
};

static void collect(void *argument, const char *text)
{
  struct collected *collected = argument;
  size_t length = strlen(text), size = sizeof(size_t), allocated = 0;
  uint64_t epoch = 1;
  void *block = malloc(length + 1);
  CHECK(collected->used + length < ROOM);
  memcpy(collected->text + collected->used, text, length + 1);
  collected->used += length;
  if (length % 7 == 0) CHECK(mallctl("epoch", NULL, NULL, &epoch, sizeof epoch) == 0);
  CHECK(mallctl("stats.allocated", &allocated, &size, NULL, 0) == 0 && allocated > 0);
  free(block);
}

/* Every bracket is closed by its own kind, outside of strings. */
static void check_json(const char *text)
{
  char open[64];
  int depth = 0, in_string = 0;
  const char *at;
  for (at = text; *at != 0; at++) {
    if (*at == '"') in_string = !in_string;
    if (in_string) continue;
    if (*at == '{' || *at == '[') {
      CHECK(depth < 64);
      open[depth++] = *at;
    }
    if (*at == '}' || *at == ']') CHECK(depth > 0 && open[--depth] == (*at == '}' ? '{' : '['));
  }
  CHECK(depth == 0 && !in_string);
}

static void *print(void *argument)
{
  struct collected collected;
  int printing;
  collected.text = malloc(ROOM);
  CHECK(collected.text != NULL && argument == NULL);
  for (printing = 0; printing < PRINTINGS; printing++) {
    int json = printing % 3 != 0;
    collected.used = 0;
    malloc_stats_print(collect, &collected, json ? "J" : "");
    if (json) {
      CHECK(strncmp(collected.text, "{\"jemalloc\":{\"version\":", 23) == 0);
      check_json(collected.text);
    } else {
      CHECK(strstr(collected.text, "___ Begin ") == collected.text);
      CHECK(strstr(collected.text, "\n--- End ") != NULL);
    }
  }
  free(collected.text);
  return NULL;
}

static void *allocate(void *argument)
{
  void *blocks[64] = {NULL};
  size_t at = 0;
  while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
    free(blocks[at % 64]);
    blocks[at % 64] = malloc(1 + at * 977 % 200000);
    CHECK(blocks[at % 64] != NULL && argument == NULL);
    at++;
  }
  for (at = 0; at < 64; at++) free(blocks[at]);
  return NULL;
}

static void *make_arenas(void *argument)
{
  size_t mib[3], used = 3;
  CHECK(mallctlnametomib("arena.0.destroy", mib, &used) == 0 && argument == NULL);
  while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
    unsigned arena;
    size_t length = sizeof arena;
    void *block;
    CHECK(mallctl("arenas.create", &arena, &length, NULL, 0) == 0);
    block = mallocx(1000, MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE);
    CHECK(block != NULL);
    mib[1] = arena;
    CHECK(mallctlbymib(mib, used, NULL, NULL, NULL, 0) == 0);
  }
  return NULL;
}

int main(void)
{
  pthread_t printers[PRINTERS], others[ALLOCATORS + 1];
  int at;
  for (at = 0; at < ALLOCATORS; at++) CHECK(pthread_create(&others[at], NULL, allocate, NULL) == 0);
  CHECK(pthread_create(&others[ALLOCATORS], NULL, make_arenas, NULL) == 0);
  for (at = 0; at < PRINTERS; at++) CHECK(pthread_create(&printers[at], NULL, print, NULL) == 0);
  for (at = 0; at < PRINTERS; at++) CHECK(pthread_join(printers[at], NULL) == 0);
  __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
  for (at = 0; at <= ALLOCATORS; at++) CHECK(pthread_join(others[at], NULL) == 0);
  puts("ok");
  return 0;
}
