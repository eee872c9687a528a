/* The standard family: zero sizes, overflow, errno, usable sizes, the sized frees. */
#include "api_check.h"

static void zero_sizes(void)
{
  void *a, *b;
  KEEPS_ERRNO(a = malloc(0));
  KEEPS_ERRNO(b = malloc(0));
  CHECK(a != NULL && b != NULL && a != b);
  KEEPS_ERRNO(free(a));
  KEEPS_ERRNO(free(b));
  a = calloc(0, 16);
  b = calloc(16, 0);
  CHECK(a != NULL && b != NULL && a != b);
  KEEPS_ERRNO(CHECK(realloc(a, 0) == NULL));
  free(b);
  a = realloc(NULL, 0);
  CHECK(a != NULL);
  free(a);
  KEEPS_ERRNO(free(NULL));
  KEEPS_ERRNO(CHECK(malloc_usable_size(NULL) == 0));
}

static void too_large(void)
{
  size_t half = (size_t)1 << 32;
  char *kept = malloc(100);
  fill(kept, 100, 1);
  FAILS_WITH(ENOMEM, malloc(opaque(SIZE_MAX)));
  FAILS_WITH(ENOMEM, malloc(opaque((size_t)PTRDIFF_MAX + 1)));
  FAILS_WITH(ENOMEM, malloc(opaque((size_t)PTRDIFF_MAX)));
  FAILS_WITH(ENOMEM, calloc(opaque(half), opaque(half)));
  FAILS_WITH(ENOMEM, calloc(opaque(SIZE_MAX), 2));
  FAILS_WITH(ENOMEM, calloc(opaque(SIZE_MAX), 1));
  FAILS_WITH(ENOMEM, realloc(NULL, opaque(SIZE_MAX)));
  CHECK(realloc(kept, opaque(SIZE_MAX)) == NULL);
  CHECK(is_filled(kept, 100, 1));
#ifndef FOREIGN /* jemalloc 5.3.0 leaves errno alone */
  FAILS_WITH(ENOMEM, realloc(kept, opaque(SIZE_MAX)));
  FAILS_WITH(ENOMEM, reallocarray(kept, opaque(half), opaque(half)));
  FAILS_WITH(ENOMEM, reallocarray(NULL, opaque(SIZE_MAX), 2));
  CHECK(is_filled(kept, 100, 1));
#endif
  free(kept);
}

static void success_and_free_keep_errno(void)
{
  size_t size;
  for (size = 1; size < (size_t)64 << 20; size = size * 3 + 1) {
    void *a, *b, *c;
    KEEPS_ERRNO(a = malloc(size));
    KEEPS_ERRNO(b = calloc(size, 1));
    CHECK(a != NULL && b != NULL && is_aligned(a, size < 16 ? 8 : 16) && is_zero(b, size));
    KEEPS_ERRNO(c = realloc(a, size * 2));
    CHECK(c != NULL);
    KEEPS_ERRNO(free(b));
    KEEPS_ERRNO(free(c));
  }
}

static void usable_sizes(void)
{
  size_t size;
  for (size = 0; size < 300000; size += 1 + size / 40) {
    void *block = malloc(size);
    size_t usable = 0;
    KEEPS_ERRNO(usable = malloc_usable_size(block));
    CHECK(usable >= size && (usable >= 8 || size == 0));
    /* 20 % above the smallest classes, as the manual of jemalloc says. */
    CHECK(size < 64 || usable <= size + size / 4);
    memset(block, 0xff, usable);
    CHECK(malloc_usable_size(block) == usable);
    free(block);
  }
}

#ifndef FOREIGN
static void sized_frees(void)
{
  size_t size;
  KEEPS_ERRNO(free_sized(NULL, 10));
  KEEPS_ERRNO(free_aligned_sized(NULL, 64, 10));
  /* jemalloc answers NULL here: free_sized(NULL) went into its cache. */
  for (size = 0; size < 40; size++) {
    void *block = malloc(size);
    CHECK(block != NULL);
    KEEPS_ERRNO(free_sized(block, size));
  }
  for (size = 1; size < (size_t)4 << 20; size = size * 2 + 1) {
    void *block = malloc(size);
    fill(block, size, 2);
    free_sized(block, size);
    block = calloc(1, size);
    CHECK(is_zero(block, size));
    free_sized(block, size);
    block = realloc(malloc(1), size);
    fill(block, size, 3);
    free_sized(block, size);
    block = aligned_alloc(256, size);
    CHECK(is_aligned(block, 256));
    fill(block, size, 4);
    KEEPS_ERRNO(free_aligned_sized(block, 256, size));
  }
  KEEPS_ERRNO(cfree(malloc(10)));
  cfree(NULL);
}

static void arrays(void)
{
  char *block = reallocarray(NULL, 10, 10);
  fill(block, 100, 5);
  block = reallocarray(block, 100, 100);
  CHECK(is_filled(block, 100, 5));
  KEEPS_ERRNO(CHECK(reallocarray(block, 0, 10) == NULL));
}
#endif

int main(void)
{
  zero_sizes();
  too_large();
  success_and_free_keep_errno();
  usable_sizes();
#ifndef FOREIGN
  sized_frees();
  arrays();
#endif
  puts("ok");
  return 0;
}
