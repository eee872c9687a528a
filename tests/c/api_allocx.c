/* The *allocx family: flags, real sizes, growing in place. */
#include "api_check.h"

static void encoding(void)
{
  CHECK(MALLOCX_LG_ALIGN(12) == 12);
  CHECK(MALLOCX_ALIGN(1) == 0 && MALLOCX_ALIGN(16) == 4 && MALLOCX_ALIGN(4096) == 12);
  CHECK(MALLOCX_ALIGN((size_t)1 << 40) == 40);
  CHECK(MALLOCX_ZERO == 0x40);
  CHECK(MALLOCX_TCACHE_NONE == 0x100 && MALLOCX_TCACHE(0) == 0x200 && MALLOCX_TCACHE(3) == 0x500);
  CHECK(MALLOCX_ARENA(0) == 0x100000 && MALLOCX_ARENA(2) == 0x300000);
}

static void sizes_agree(void)
{
  size_t size;
  int lg;
  for (size = 1; size < (size_t)8 << 20; size += 1 + size / 7)
    for (lg = 0; lg <= 16; lg += 4) {
      int flags = MALLOCX_LG_ALIGN(lg);
      void *block = NULL;
      size_t real = nallocx(size, flags);
      KEEPS_ERRNO(block = mallocx(size, flags));
      CHECK(real >= size && block != NULL);
      CHECK(sallocx(block, flags) == real && malloc_usable_size(block) == real);
      CHECK(is_aligned(block, (size_t)1 << lg));
      CHECK(nallocx(real, flags) == real);
      fill(block, real, 1);
      CHECK(is_filled(block, real, 1));
      if (lg % 8) KEEPS_ERRNO(sdallocx(block, size % 2 ? size : real, flags));
      else KEEPS_ERRNO(dallocx(block, flags));
    }
}

static void too_large(void)
{
  void *kept = mallocx(64, 0);
  fill(kept, 64, 2);
  CHECK(nallocx(opaque(SIZE_MAX), 0) == 0);
  CHECK(nallocx(opaque((size_t)PTRDIFF_MAX), 0) == 0);
  CHECK(nallocx(1, MALLOCX_LG_ALIGN(63)) == 0);
  CHECK(nallocx(opaque((size_t)1 << 62), MALLOCX_LG_ALIGN(62)) != 1);
  CHECK(mallocx(opaque(SIZE_MAX), 0) == NULL);
  CHECK(mallocx(opaque((size_t)PTRDIFF_MAX), MALLOCX_TCACHE_NONE) == NULL);
  CHECK(mallocx(1, MALLOCX_LG_ALIGN(63)) == NULL);
  CHECK(rallocx(kept, opaque(SIZE_MAX), 0) == NULL);
  CHECK(rallocx(kept, opaque(SIZE_MAX), MALLOCX_ZERO) == NULL);
  CHECK(is_filled(kept, 64, 2));
  CHECK(xallocx(kept, opaque((size_t)PTRDIFF_MAX), 0, 0) == sallocx(kept, 0));
  CHECK(xallocx(kept, 64, opaque(SIZE_MAX - 64), 0) >= 64);
  dallocx(kept, 0);
}

#ifndef FOREIGN /* the last class of jemalloc is 7 * 2^60 */
/* The last class is 2^48: what is larger has no real size, and no memory, whatever the flags. */
static void boundaries(void)
{
  static const int WAYS[] = {0, MALLOCX_TCACHE_NONE, MALLOCX_ARENA(0), MALLOCX_ZERO,
                             MALLOCX_LG_ALIGN(4), MALLOCX_LG_ALIGN(12), MALLOCX_LG_ALIGN(21)};
  const size_t largest = (size_t)1 << 48;
  unsigned count = 0;
  size_t length = sizeof count, last, way, size, mib[4], mib_length = 4;
  int lg, lg_align;
  CHECK(mallctl("arenas.nlextents", &count, &length, NULL, 0) == 0);
  CHECK(mallctlnametomib("arenas.lextent.0.size", mib, &mib_length) == 0);
  mib[2] = count - 1;
  length = sizeof last;
  CHECK(mallctlbymib(mib, mib_length, &last, &length, NULL, 0) == 0 && last == largest);
  for (lg = 14; lg < 64; lg++)
    for (size = ((size_t)1 << lg) - 1; size <= ((size_t)1 << lg) + 1; size++) {
      for (lg_align = 0; lg_align < 64; lg_align++) {
        size_t real = nallocx(opaque(size), MALLOCX_LG_ALIGN(lg_align));
        int is_there = size <= largest && lg_align <= 48;
        CHECK(is_there ? real >= size && real <= largest : real == 0);
        CHECK(nallocx(opaque(real), 0) == real || real == 0);
      }
      for (way = 0; way < sizeof WAYS / sizeof WAYS[0]; way++) {
        void *kept = mallocx(20000, WAYS[way]);
        if (size <= largest) {
          dallocx(kept, WAYS[way]);
          continue;
        }
        FAILS_WITH(ENOMEM, mallocx(opaque(size), WAYS[way]));
        FAILS_WITH(ENOMEM, rallocx(kept, opaque(size), WAYS[way]));
        CHECK(xallocx(kept, opaque(size), 0, WAYS[way]) == sallocx(kept, 0));
        dallocx(kept, WAYS[way]);
      }
    }
}
#endif

static const int FLAGS[] = {0, MALLOCX_TCACHE_NONE, MALLOCX_ARENA(0),
                            MALLOCX_ARENA(0) | MALLOCX_TCACHE_NONE, MALLOCX_LG_ALIGN(6),
                            MALLOCX_LG_ALIGN(13) | MALLOCX_TCACHE_NONE};
#define FLAGS_COUNT (sizeof FLAGS / sizeof FLAGS[0])
static const size_t SIZES[] = {1, 8, 17, 100, 1000, 5000, 14336, 16384, 30000, 300000, 2000000};
#define SIZE_COUNT (sizeof SIZES / sizeof SIZES[0])

#ifndef FOREIGN /* undefined in jemalloc */
static void no_bytes(void)
{
  size_t flags;
  for (flags = 0; flags < FLAGS_COUNT; flags++) {
    size_t real = nallocx(0, FLAGS[flags]);
    void *block = mallocx(0, FLAGS[flags]), *from_null = rallocx(NULL, 0, FLAGS[flags]);
    CHECK(real != 0 && sallocx(block, FLAGS[flags]) == real && sallocx(from_null, FLAGS[flags]) == real);
    fill(block, real, 6);
    CHECK(is_filled(block, real, 6));
    block = rallocx(block, 100, FLAGS[flags]);
    block = rallocx(block, 0, FLAGS[flags]);
    CHECK(sallocx(block, FLAGS[flags]) > 0);
    fill(block, real, 7);
    sdallocx(block, 0, FLAGS[flags]);
    dallocx(from_null, FLAGS[flags]);
    block = rallocx(malloc(0), 0, FLAGS[flags]);
    CHECK(sallocx(block, FLAGS[flags]) > 0);
    dallocx(block, FLAGS[flags]);
  }
}
#endif

// The usable size is enough to free a block, also of one that was asked for with an alignment.
static void usable_size_alone(void)
{
  size_t lg, size;
  for (lg = 0; lg < 22; lg++)
    for (size = 1; size < 5000; size = size * 5 / 4 + 1) {
      void *block = mallocx(size, MALLOCX_LG_ALIGN(lg));
      CHECK(block != NULL);
      sdallocx(block, sallocx(block, 0), size % 2 == 0 ? 0 : MALLOCX_TCACHE_NONE);
    }
}

static void zeroed(void)
{
  size_t at, round, flags;
  for (flags = 0; flags < FLAGS_COUNT; flags++)
    for (at = 0; at < SIZE_COUNT; at++)
      for (round = 0; round < 4; round++) {
        void *block = mallocx(SIZES[at], FLAGS[flags] | MALLOCX_ZERO);
        CHECK(block != NULL && is_zero(block, SIZES[at]));
        memset(block, 0xff, sallocx(block, 0));
        dallocx(block, FLAGS[flags]);
      }
}

static void resized(void)
{
  size_t from, to, flags;
  for (flags = 0; flags < FLAGS_COUNT; flags++)
    for (from = 0; from < SIZE_COUNT; from++)
      for (to = 0; to < SIZE_COUNT; to++) {
        size_t least = SIZES[from] < SIZES[to] ? SIZES[from] : SIZES[to];
        size_t alignment = (size_t)1 << (FLAGS[flags] & 0x3f), had;
        void *block = mallocx(SIZES[from], FLAGS[flags]);
        fill(block, SIZES[from], 3);
        KEEPS_ERRNO(block = rallocx(block, SIZES[to], FLAGS[flags]));
        CHECK(block != NULL && is_aligned(block, alignment) && is_filled(block, least, 3));
        /* With ZERO, everything behind the old real size is zero. */
        had = sallocx(block, 0);
        memset(block, 0xcc, had);
        block = rallocx(block, had * 2, FLAGS[flags] | MALLOCX_ZERO);
        CHECK(is_zero((char *)block + had, had));
        CHECK(((unsigned char *)block)[had - 1] == 0xcc);
        sdallocx(block, had * 2, FLAGS[flags]);
      }
}

static void in_place(void)
{
  size_t at;
  for (at = 0; at < SIZE_COUNT; at++) {
    size_t size = SIZES[at], real, grown;
    void *block = mallocx(size, 0);
    real = sallocx(block, 0);
    fill(block, real, 4);
    CHECK(xallocx(block, size, 0, 0) == real);
    CHECK(xallocx(block, real, 0, 0) == real);
    grown = xallocx(block, real + 1, 0, 0);
    CHECK(grown == real || grown == nallocx(real + 1, 0));
    CHECK(sallocx(block, 0) == grown && is_filled(block, real, 4));
    fill(block, grown, 4);
    grown = xallocx(block, size, grown * 4, 0);
    CHECK(grown >= size && sallocx(block, 0) == grown && is_filled(block, size, 4));
    fill(block, grown, 5);
    CHECK(is_filled(block, grown, 5));
    dallocx(block, 0);
  }
}

/* `realloc` may leave a block of another class than its size's, and each size up to the real one
 * frees it, whatever the flags say. */
static void freed_after_realloc(void)
{
  static const size_t SIZES_OF[][2] = {{128, 112}, {100, 120}, {1000, 900}, {5000, 4500}};
  static const int WAYS_OF[] = {0, MALLOCX_TCACHE_NONE, MALLOCX_ARENA(0)};
  size_t at, way;
  for (at = 0; at < sizeof SIZES_OF / sizeof *SIZES_OF; at++)
    for (way = 0; way < sizeof WAYS_OF / sizeof *WAYS_OF; way++) {
      void *block = realloc(malloc(SIZES_OF[at][0]), SIZES_OF[at][1]);
      CHECK(block != NULL);
      sdallocx(block, SIZES_OF[at][1], WAYS_OF[way]);
      block = realloc(malloc(SIZES_OF[at][0]), SIZES_OF[at][1]);
      CHECK(block != NULL);
      sdallocx(block, sallocx(block, 0), WAYS_OF[way]);
    }
}

/* A large block that has enough is made longer if there is room. */
static void made_longer(void)
{
  const size_t mib = (size_t)1 << 20;
  void *block = mallocx(4 * mib, 0);
  CHECK(block != NULL && xallocx(block, mib, 0, 0) == mib);
#ifndef FOREIGN
  CHECK(xallocx(block, mib, SIZE_MAX - mib, 0) == mib);
  CHECK(xallocx(block, mib, mib, 0) == 2 * mib);
  CHECK(xallocx(block, mib, mib, 0) == 2 * mib && sallocx(block, 0) == 2 * mib);
#endif
  dallocx(block, 0);
}

static void arenas(void)
{
  unsigned count = 0;
  size_t length = sizeof count;
  CHECK(mallctl("arenas.narenas", &count, &length, NULL, 0) == 0 && count > 0);
#ifndef FOREIGN /* jemalloc asserts or crashes */
  CHECK(mallocx(100, MALLOCX_ARENA(4000)) == NULL);
  dallocx(mallocx(100, MALLOCX_TCACHE(0)), MALLOCX_TCACHE(0));
  dallocx(NULL, 0);
  sdallocx(NULL, 10, MALLOCX_TCACHE_NONE);
  CHECK(sallocx(NULL, 0) == 0);
#endif
}

int main(void)
{
  encoding();
  sizes_agree();
  too_large();
#ifndef FOREIGN
  boundaries();
  no_bytes();
#endif
  usable_size_alone();
  zeroed();
  resized();
  in_place();
  freed_after_realloc();
  made_longer();
  arenas();
  puts("ok");
  return 0;
}
