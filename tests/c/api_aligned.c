/* Alignments: every power of two, and what is none. */
#include "api_check.h"

#ifdef FOREIGN
#define LEAST 1 /* jemalloc's memalign ignores the alignment for size 0 */
#else
#define LEAST 0
#endif
static const size_t SIZES[] = {LEAST, 1,    7,    8,    24,    48,    100,  1000,
                               4095,  4096, 5000, 14336, 16384, 70000, 1 << 20};
#define SIZE_COUNT (sizeof SIZES / sizeof SIZES[0])

static void every_alignment(void)
{
  size_t alignment, at;
  for (alignment = 1; alignment <= (size_t)64 << 20; alignment *= 2) {
    for (at = 0; at < SIZE_COUNT; at++) {
      size_t size = SIZES[at];
      void *blocks[4] = {NULL, NULL, NULL, NULL};
      int code = 0, block;
      KEEPS_ERRNO(blocks[0] = aligned_alloc(alignment, size));
      KEEPS_ERRNO(blocks[1] = memalign(alignment, size));
      if (alignment >= sizeof(void *)) 
        KEEPS_ERRNO(code = posix_memalign(&blocks[2], alignment, size));
      else blocks[2] = malloc(1);
      blocks[3] = memalign(alignment, size);
      CHECK(code == 0);
      for (block = 0; block < 4; block++) {
        CHECK(blocks[block] != NULL);
        if (block != 2 || alignment >= sizeof(void *)) {
          CHECK(is_aligned(blocks[block], alignment));
          CHECK(malloc_usable_size(blocks[block]) >= size);
          fill(blocks[block], size, (unsigned)block);
        }
      }
      for (block = 0; block < 4; block++) {
        if (block != 2) CHECK(is_filled(blocks[block], size, (unsigned)block));
        KEEPS_ERRNO(free(blocks[block]));
      }
    }
  }
}

static void no_alignments(void)
{
  static const size_t WRONG[] = {0,    3,        12,           24,                     48, 100,
                                 4095, SIZE_MAX, SIZE_MAX - 7, ((size_t)1 << 63) + 8};
  size_t at;
  void *untouched = (void *)&at;
  for (at = 0; at < sizeof WRONG / sizeof WRONG[0]; at++) {
    KEEPS_ERRNO(CHECK(posix_memalign(&untouched, WRONG[at], 100) == EINVAL));
    CHECK(untouched == (void *)&at);
    FAILS_WITH(EINVAL, aligned_alloc(opaque(WRONG[at]), 100));
#ifndef FOREIGN /* jemalloc's memalign rounds an alignment of 0 up */
    FAILS_WITH(EINVAL, memalign(opaque(WRONG[at]), 100));
#endif
  }
  for (at = 1; at < sizeof(void *); at *= 2)
    KEEPS_ERRNO(CHECK(posix_memalign(&untouched, at, 100) == EINVAL));
  CHECK(untouched == (void *)&at);
}

static void too_large(void)
{
  void *untouched = (void *)&untouched;
#ifndef FOREIGN /* jemalloc lets mmap's errno through */
  KEEPS_ERRNO(CHECK(posix_memalign(&untouched, 64, opaque(SIZE_MAX)) == ENOMEM));
  KEEPS_ERRNO(CHECK(posix_memalign(&untouched, 64, opaque((size_t)1 << 60)) == ENOMEM));
  KEEPS_ERRNO(CHECK(posix_memalign(&untouched, (size_t)1 << 63, 1) == ENOMEM));
#endif
  CHECK(posix_memalign(&untouched, (size_t)1 << 62, opaque((size_t)1 << 62)) == ENOMEM);
  CHECK(untouched == (void *)&untouched);
  FAILS_WITH(ENOMEM, aligned_alloc(64, opaque((size_t)PTRDIFF_MAX - 10)));
  FAILS_WITH(ENOMEM, aligned_alloc((size_t)1 << 63, opaque(1)));
#ifndef FOREIGN /* jemalloc's old functions leave errno alone */
  FAILS_WITH(ENOMEM, memalign(4096, opaque(SIZE_MAX - 4095)));
  FAILS_WITH(ENOMEM, valloc(opaque(SIZE_MAX)));
  FAILS_WITH(ENOMEM, pvalloc(opaque(SIZE_MAX)));
  FAILS_WITH(ENOMEM, pvalloc(opaque(SIZE_MAX - 4095)));
#endif
}

static void pages(void)
{
  size_t size;
  for (size = 0; size < 40000; size += 777) {
    void *block = valloc(size);
    CHECK(block != NULL && is_aligned(block, 4096));
    fill(block, size, 9);
    free(block);
#ifndef FOREIGN
    block = pvalloc(size);
    CHECK(block != NULL && is_aligned(block, 4096));
    CHECK(malloc_usable_size(block) >= (size + 4095) / 4096 * 4096);
    CHECK(malloc_usable_size(block) >= 4096);
    fill(block, malloc_usable_size(block), 9);
    free(block);
#endif
  }
}

int main(void)
{
  every_alignment();
  no_alignments();
  too_large();
  pages();
  puts("ok");
  return 0;
}
