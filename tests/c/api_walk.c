/* The walk over live blocks, and the heap as a map. */
#include "api_check.h"

#ifndef FOREIGN

#include <limits.h>

enum { COUNT = 300 };
static void *blocks[COUNT];
static unsigned seen[COUNT];
static unsigned arena;

static size_t size_of(int at)
{
  return (size_t)at * (at % 10 == 0 ? 3000 : 30);
}

/* Looks the block up among ours. The walk may be the caller of malloc itself. */
static bool look(void *opaque, void *ptr, size_t size, unsigned its)
{
  int at;
  void *own = malloc(100);
  CHECK(opaque == blocks && own != NULL);
  for (at = 0; at < COUNT; at++)
    if (blocks[at] == ptr) {
      CHECK(size == malloc_usable_size(ptr) && its != UINT_MAX);
      CHECK(arena == 0 || its == (at % 3 == 0 ? arena : its));
      seen[at]++;
    }
  free(own);
  return true;
}

static bool stop(void *opaque, void *ptr, size_t size, unsigned its)
{
  (void)ptr, (void)size, (void)its;
  return ++*(int *)opaque < 7;
}

/* How often each block is seen when these are to be. */
static void expect(unsigned which, int step)
{
  int at, error = -1;
  memset(seen, 0, sizeof seen);
  KEEPS_ERRNO(error = lumalloc_walk(which, look, blocks));
  CHECK(error == 0);
  for (at = 0; at < COUNT; at++) CHECK(seen[at] == (at % step == 0 && blocks[at] != NULL));
}

static void walk(void)
{
  int at, count = 0;
  unsigned gone;
  char name[50];
  size_t length = sizeof arena;
  CHECK(mallctl("arenas.create", &arena, &length, NULL, 0) == 0);
  for (at = 0; at < COUNT; at++) {
    blocks[at] = at % 3 == 0 ? mallocx(size_of(at) + 1, MALLOCX_ARENA(arena)) : malloc(size_of(at));
    CHECK(blocks[at] != NULL);
  }
  expect(MALLCTL_ARENAS_ALL, 1);
  expect(arena, 3);
  for (at = 0; at < COUNT; at += 2) {
    free(blocks[at]);
    blocks[at] = NULL;
  }
  expect(MALLCTL_ARENAS_ALL, 1);
  CHECK(lumalloc_walk(MALLCTL_ARENAS_ALL, stop, &count) == ECANCELED && count == 7);
  KEEPS_ERRNO(CHECK(lumalloc_walk(4000, stop, &count) == ENOENT));
  CHECK(lumalloc_walk(arena, NULL, NULL) == EINVAL && count == 7);
  CHECK(mallctl("arenas.create", &gone, &length, NULL, 0) == 0);
  sprintf(name, "arena.%u.destroy", gone);
  CHECK(mallctl(name, NULL, NULL, NULL, 0) == 0);
  CHECK(lumalloc_walk(MALLCTL_ARENAS_DESTROYED, stop, &count) == ENOENT);
}

static char text[1 << 20];

static void collect(void *opaque, const char *piece)
{
  CHECK(opaque == text && strlen(text) + strlen(piece) < sizeof text);
  free(malloc(10));
  strcat(text, piece);
}

static void map(void)
{
  char expected[64], *rest;
  int error = -1;
  void *block = mallocx(1 << 20, MALLOCX_ARENA(arena));
  snprintf(expected, sizeof expected, "{\"base\":\"%p\",\"bytes\":1048576,\"state\":\"large\"", block);
  CHECK(lumalloc_map(collect, text, MALLCTL_ARENAS_DESTROYED, NULL, 1) == ENOENT && text[0] == 0);
  KEEPS_ERRNO(error = lumalloc_map(collect, text, arena, NULL, 0));
  CHECK(error == 0 && strncmp(text, "{\"page\":4096,\"runs\":[\n{", 23) == 0);
  CHECK(strstr(text, expected) != NULL && strstr(text, "\"slab\"") != NULL);
  CHECK(strcmp(strstr(text, "\"next\""), "\"next\":null}\n") == 0);
  text[0] = 0;
  CHECK(lumalloc_map(collect, text, MALLCTL_ARENAS_ALL, block, 1) == 0);
  CHECK(strstr(text, expected) != NULL && strstr(strstr(text, "base") + 1, "base") == NULL);
  CHECK(strstr(text, "\"next\":\"0x") != NULL);
  text[0] = 0;
  KEEPS_ERRNO(error = lumalloc_map_at(collect, text, (char *)block + 5000));
  CHECK(error == 0 && (rest = strstr(text, expected)) != NULL);
  CHECK(strstr(rest, "\"used\":1,") != NULL && strstr(rest, "\"sites\":[\n]") != NULL);
  KEEPS_ERRNO(CHECK(lumalloc_map(collect, text, 4000, NULL, 0) == ENOENT));
  CHECK(lumalloc_map(NULL, NULL, 0, NULL, 0) == EINVAL);
  CHECK(lumalloc_map_at(NULL, NULL, NULL) == EINVAL);
  free(block);
}

int main(void)
{
  walk();
  map();
  puts("ok");
  return 0;
}

#else

int main(void)
{
  puts("ok");
  return 0;
}

#endif
