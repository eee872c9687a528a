/* Contents: calloc of recycled memory is zero, realloc keeps what was there through every path. */
#include "api_check.h"

/* Small, at the borders of the classes, large, and beyond what is remapped instead of copied. */
static const size_t SIZES[] = {1,     8,      9,      16,     100,    128,     129,
                               1000,  4000,   4096,   4097,   8192,   14336,   14337,
                               16384, 16385,  20480,  40000,  65536,  100000,  262144,
                               524288, 524289, 1048576, 3000000, 9000000};
#define SIZE_COUNT (sizeof SIZES / sizeof SIZES[0])

static void calloc_after_use(void)
{
  size_t at;
  int round, many;
  for (at = 0; at < SIZE_COUNT; at++) {
    for (round = 0; round < 3; round++) {
      void *blocks[8];
      int count = SIZES[at] > 1000000 ? 2 : 8;
      for (many = 0; many < count; many++) {
        blocks[many] = malloc(SIZES[at]);
        memset(blocks[many], 0xa5, malloc_usable_size(blocks[many]));
      }
      for (many = 0; many < count; many++) free(blocks[many]);
      for (many = 0; many < count; many++) {
        blocks[many] = many % 2 ? calloc(1, SIZES[at]) : calloc(SIZES[at], 1);
        CHECK(is_zero(blocks[many], SIZES[at]));
        memset(blocks[many], 0x5a, malloc_usable_size(blocks[many]));
      }
      for (many = 0; many < count; many++) free(blocks[many]);
    }
  }
}

/* From every size to every size, with neighbours that are free or not. */
static void realloc_all_pairs(void)
{
  size_t from, to;
  for (from = 0; from < SIZE_COUNT; from++) {
    for (to = 0; to < SIZE_COUNT; to++) {
      size_t least = SIZES[from] < SIZES[to] ? SIZES[from] : SIZES[to];
      void *before = malloc(SIZES[from]);
      void *block = malloc(SIZES[from]);
      void *after = malloc(SIZES[from]);
      fill(block, SIZES[from], 6);
      memset(before, 0xee, SIZES[from]);
      memset(after, 0xee, SIZES[from]);
      if ((from + to) % 2) free(after);
      block = realloc(block, SIZES[to]);
      CHECK(block != NULL && malloc_usable_size(block) >= SIZES[to]);
      CHECK(is_filled(block, least, 6));
      memset(block, 0xdd, SIZES[to]);
      if ((from + to) % 2 == 0) free(after);
      free(before);
      free(block);
    }
  }
}

static void grow_step_by_step(void)
{
  size_t size = 1, next;
  char *block = malloc(size);
  fill(block, size, 7);
  for (; size < (size_t)32 << 20; size = next) {
    next = size + size / 3 + 1;
    block = realloc(block, next);
    CHECK(is_filled(block, size, 7));
    fill(block, next, 7);
  }
  for (; size > 1; size = next) {
    next = size / 2;
    block = realloc(block, next);
    CHECK(is_filled(block, next, 7));
  }
  free(block);
}

static void aligned_blocks_move_too(void)
{
  size_t alignment, at;
  for (alignment = 16; alignment <= (size_t)1 << 21; alignment *= 4)
    for (at = 0; at < SIZE_COUNT; at++) {
      char *block = aligned_alloc(alignment, SIZES[at]);
      size_t size = SIZES[at] * 2 + 1;
      fill(block, SIZES[at], 8);
      block = realloc(block, size);
      CHECK(is_filled(block, SIZES[at], 8));
      memset(block, 1, size);
      free(block);
    }
}

/* Many live blocks at once: none overlaps another. */
static void blocks_do_not_overlap(void)
{
  enum { COUNT = 3000 };
  static unsigned char *blocks[COUNT];
  static size_t sizes[COUNT];
  unsigned random = 1, at, round;
  for (round = 0; round < 30; round++) {
    for (at = 0; at < COUNT; at++) {
      random = random * 1664525u + 1013904223u;
      if (blocks[at] != NULL && random >> 31) {
        CHECK(is_filled(blocks[at], sizes[at], at));
        free(blocks[at]);
        blocks[at] = NULL;
      }
      if (blocks[at] == NULL) {
        sizes[at] = (random >> 8) % ((random >> 4) % 16 == 0 ? 20000 : 300);
        blocks[at] = malloc(sizes[at]);
        fill(blocks[at], sizes[at], at);
      }
    }
  }
  for (at = 0; at < COUNT; at++) {
    CHECK(is_filled(blocks[at], sizes[at], at));
    free(blocks[at]);
  }
}

int main(void)
{
  calloc_after_use();
  realloc_all_pairs();
  grow_step_by_step();
  aligned_blocks_move_too();
  blocks_do_not_overlap();
  puts("ok");
  return 0;
}
