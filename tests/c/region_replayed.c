/* Writes a trace of calls on three regions to a file, and prints how many blocks are in use at the end. */
#define VMFL
#include "region_check.h"
#include <fcntl.h>

enum { REGIONS = 3, BLOCKS = 200, CALLS = 30000 };

int main(int count, char **arguments)
{
  static void *blocks[REGIONS][BLOCKS];
  static size_t sizes[REGIONS][BLOCKS];
  Vmalloc_t *regions[REGIONS];
  unsigned state = 1;
  int call, region, at, busy = 0;
  size_t bytes = 0;
  Vmstat_t st;
  CHECK(count == 2);
  regions[0] = vmopen(Vmdcsystem, Vmbest, VM_TRACE);
  regions[1] = vmopen(Vmdcheap, Vmpool, VM_TRACE);
  regions[2] = vmopen(Vmdcheap, Vmdebug, VM_TRACE);
  CHECK(vmtrace(open(arguments[1], O_WRONLY | O_CREAT | O_TRUNC, 0644)) == -1);
  for (call = 0; call < CALLS; call++) {
    void **block;
    size_t size, *held;
    state = state * 1103515245u + 12345;
    region = (int)(state >> 16) % REGIONS;
    at = (int)(state >> 8) % BLOCKS;
    block = &blocks[region][at];
    held = &sizes[region][at];
    size = region == 1 ? 24 : (state >> 12) % 500 + 1;
    if (*block == NULL) {
      *block = state % 10 == 0 && region != 1 ? vmalign(regions[region], size, 64) : vmalloc(regions[region], size);
      *held = size;
    } else if (state % 3 == 0 && region != 1) {
      *block = vmresize(regions[region], *block, size, VM_RSCOPY);
      *held = size;
    } else {
      CHECK(vmfree(regions[region], *block) == 0);
      *block = NULL;
    }
    CHECK(*block != NULL || *held != 0);
  }
  for (region = 0; region < REGIONS; region++) {
    CHECK(vmstat(regions[region], &st) == 0);
    busy += st.n_busy;
    for (at = 0; at < BLOCKS; at++) bytes += blocks[region][at] == NULL ? 0 : sizes[region][at];
  }
  printf("%d %lu\n", busy, (unsigned long)bytes);
  return 0;
}
