/* Allocates and frees blocks of argv[1] bytes, argv[2] of them, by malloc or, with a third argument,
 * past the caches: what opt.stats_interval counts. */
#include "api_check.h"

int main(int argc, char **argv)
{
  size_t size, count;
  CHECK(argc >= 3);
  size = strtoull(argv[1], NULL, 10);
  for (count = strtoull(argv[2], NULL, 10); count > 0; count--) {
    void *block = argc > 3 ? mallocx(size, MALLOCX_TCACHE_NONE) : malloc(size);
    CHECK(block != NULL);
    free(block);
  }
  return 0;
}
