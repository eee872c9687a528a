// A process of one thread that wrote a byte behind a block of argv[2] bytes returns from main.
//
//   arena    its thread has taken memory from another arena meanwhile, so it has two caches
//   explicit the process has an explicit cache, which may hold any block
#include "death_common.h"

__attribute__((weak)) int mallctl(const char *, void *, size_t *, void *, size_t);

int main(int argc, char **argv)
{
  if (argc != 3) return 2;
  size_t size = strtoul(argv[2], NULL, 10);
  volatile char *block = malloc(size);
  block[size] = 1;
  if (strcmp(argv[1], "arena") == 0) {
    unsigned old, new = 1;
    size_t length = sizeof old;
    if (mallctl("thread.arena", &old, &length, &new, sizeof new)) return 3;
    free(malloc(size));
    if (mallctl("thread.arena", NULL, NULL, &old, sizeof old)) return 3;
  } else {
    unsigned cache;
    size_t length = sizeof cache;
    if (mallctl("tcache.create", &cache, &length, NULL, 0)) return 3;
  }
  return 0;
}
