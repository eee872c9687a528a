/* Leaves a region in the file that it is given, and prints its blocks: "address bytes", a line each. */
#include "region_check.h"
#include <unistd.h>

int main(int argc, char **argv)
{
  Vmalloc_t *vm = argc > 1 ? vmmopen(argv[1], -1, 1 << 20) : NULL;
  char *blocks[4];
  int i;
  CHECK(vm != NULL);
  for (i = 0; i < 4; i++) {
    blocks[i] = (char *)vmalloc(vm, (size_t)i * 1000 + 40);
    CHECK(blocks[i] != NULL);
  }
  CHECK(vmfree(vm, blocks[1]) == 0);
  for (i = 0; i < 4; i++) {
    if (i != 1) printf("%lx %ld\n", (unsigned long)blocks[i], vmsize(vm, blocks[i]));
  }
  /* An overrun, on wish. */
  if (argc > 2) memset(blocks[2], 0xff, (size_t)vmsize(vm, blocks[2]) + 8);
  fflush(stdout);
  _exit(0);
}
