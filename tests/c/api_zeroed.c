/* MALLOCX_ZERO and calloc: every usable byte reads zero, so that growth with MALLOCX_ZERO, in place
   or by a move, adds nothing but zeros. Memory is recycled dirty before each request. */
#include "api_check.h"

#define BATCH 40

static int flags;
static void *batch[BATCH];

/* Blocks of this size are used and freed, so that the next request gets dirty memory. */
static void soil(size_t size)
{
  size_t at, count = size > 40000 ? 2 : BATCH;
  for (at = 0; at < count; at++) {
    batch[at] = mallocx(size, flags);
    CHECK(batch[at] != NULL);
    memset(batch[at], 0xff, sallocx(batch[at], 0));
  }
  for (at = 0; at < count; at++) dallocx(batch[at], flags);
}

/* All that the block may hold behind `from` reads zero. */
static int is_zero_from(void *block, size_t from)
{
  return is_zero((char *)block + from, sallocx(block, 0) - from);
}

static void fresh(size_t size)
{
  void *block;
  soil(size);
  block = mallocx(size, flags | MALLOCX_ZERO);
  CHECK(block != NULL && is_zero_from(block, 0));
  memset(block, 0xff, sallocx(block, 0));
  dallocx(block, flags);
  if (flags != 0) return;
  block = calloc(1, size);
  CHECK(block != NULL && is_zero_from(block, 0));
  memset(block, 0xff, sallocx(block, 0));
  free(block);
}

/* What the program wrote stays, and everything behind it is zero, step by step. */
static void grown(size_t size, size_t step, int in_place)
{
  size_t written = size, turn, goal;
  void *block;
  soil(size);
  block = mallocx(size, flags | MALLOCX_ZERO);
  memset(block, 0xcc, written);
  for (turn = 0; turn < 4; turn++) {
    goal = written + step;
    soil(goal);
    if (!in_place) block = rallocx(block, goal, flags | MALLOCX_ZERO);
    else if (xallocx(block, goal, 0, flags | MALLOCX_ZERO) < goal) break;
    CHECK(block != NULL && sallocx(block, 0) >= goal);
    CHECK(((unsigned char *)block)[written - 1] == 0xcc && is_zero_from(block, written));
    memset(block, 0xcc, goal);
    written = goal;
  }
  dallocx(block, flags);
}

/* The end that a shorter block gave back was dirty. */
static void regrown(size_t size)
{
  size_t shorter = size / 2;
  void *block;
  soil(size);
  block = mallocx(size, flags | MALLOCX_ZERO);
  memset(block, 0xff, sallocx(block, 0));
  block = rallocx(block, shorter, flags | MALLOCX_ZERO);
  shorter = sallocx(block, 0);
  if (xallocx(block, size, 0, flags | MALLOCX_ZERO) < size)
    block = rallocx(block, size, flags | MALLOCX_ZERO);
  CHECK(block != NULL && is_zero_from(block, shorter));
  dallocx(block, flags);
}

static void all(void)
{
  size_t size, class;
  /* From class to class. In the hardened tier, where nallocx tells the requested size, about so. */
  for (size = 1; size <= (size_t)3 << 20; size = (class > size + size / 8 ? class : size + size / 8) + 1) {
    class = nallocx(size, 0);
    fresh(size);
    fresh((size + class) / 2);
    fresh(class);
    grown(size, 1, 0);
    grown(size, class / 9 + 1, 0);
    grown(size, class / 9 + 1, 1);
    grown(size, class, 0);
    regrown(class);
  }
}

int main(void)
{
  unsigned cache;
  size_t length = sizeof cache;
  CHECK(mallctl("tcache.create", &cache, &length, NULL, 0) == 0);
  all();
  flags = MALLOCX_TCACHE_NONE, all();
  flags = MALLOCX_TCACHE(cache), all();
  flags = MALLOCX_ARENA(0), all();
  flags = MALLOCX_LG_ALIGN(7), all();
  puts("ok");
  return 0;
}
