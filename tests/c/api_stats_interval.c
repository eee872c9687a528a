/* Allocates and frees blocks of argv[1] bytes, argv[2] of them: what opt.stats_interval counts. By
 * malloc, or as the third argument says: "uncached" past the caches, "grown" one block by realloc,
 * which gets longer by argv[1] bytes each time, "refused" by malloc without memory for them, and
 * "refused-uncached" past the caches. */
#include "api_check.h"

int main(int argc, char **argv)
{
  size_t size, count, bytes = 0;
  void *grown = NULL;
  CHECK(argc >= 3);
  size = strtoull(argv[1], NULL, 10);
  for (count = strtoull(argv[2], NULL, 10); count > 0; count--) {
    void *block;
    if (argc > 3 && strcmp(argv[3], "grown") == 0) {
      CHECK((grown = realloc(grown, bytes += size)) != NULL);
      continue;
    }
    if (argc > 3 && strncmp(argv[3], "refused", 7) == 0) {
      block = argv[3][7] == '\0' ? malloc(size) : mallocx(size, MALLOCX_TCACHE_NONE);
      CHECK(block == NULL);
      continue;
    }
    block = argc > 3 ? mallocx(size, MALLOCX_TCACHE_NONE) : malloc(size);
    CHECK(block != NULL);
    free(block);
  }
  free(grown);
  return 0;
}
