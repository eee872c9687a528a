/*
 * malloc stays with its heap if the system refuses what another region needs. -DREFUSE_MEMORY: no region
 * gets memory. Prints "ok".
 */
#include "api_check.h"
#include "vmalloc.h"
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef REFUSE_MEMORY
/* The C library's, for the library too. A region asks for addresses that nobody may use yet, or for less
 * than the heap does. */
void *mmap(void *at, size_t length, int access, int flags, int file, off_t offset)
{
  if (access == PROT_NONE || length < 1 << 20) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return (void *)syscall(SYS_mmap, at, length, access, flags, file, offset);
}

void *mmap64(void *at, size_t length, int access, int flags, int file, off64_t offset)
{
  return mmap(at, length, access, flags, file, offset);
}
#endif

static void all_blocks_are_the_heaps(void)
{
  size_t size;
  for (size = 1; size < 100000; size *= 3) {
    void *block = malloc(size);
    CHECK(block != NULL && vmregion(block) == Vmheap);
    free(block);
  }
}

int main(void)
{
  Vmalloc_t *vm = vmopen(Vmdcsystem, Vmbest, VM_SHARE);
#ifdef REFUSE_MEMORY
  CHECK(vm == NULL && errno == ENOMEM && Vmregion == Vmheap);
  all_blocks_are_the_heaps();
#else
  CHECK(vm != NULL);
  Vmregion = vm;
  all_blocks_are_the_heaps();
  Vmregion = Vmheap;
  CHECK(vmclose(vm) == 0);
#endif
  puts("ok");
  return 0;
}
