// Preloaded, this object makes the system's pages look to the allocator as they do on a kernel with pages of 64 KiB:
// addresses that are no multiple of that are refused, and lengths are rounded up to whole pages. An emulator does not
// do so for mprotect.
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 65536UL

static uintptr_t up(uintptr_t value) { return (value + PAGE - 1) & ~(PAGE - 1); }

// Returns whether an address is not where a page begins.
static int is_within(const void *address)
{
  if ((uintptr_t)address % PAGE == 0) return 0;
  errno = EINVAL;
  return 1;
}

// What the allocator and the C library ask for here.
long sysconf(int name)
{
  switch (name) {
  case _SC_PAGESIZE: return PAGE;
  case _SC_NPROCESSORS_ONLN:
  case _SC_NPROCESSORS_CONF: return 2;
  case _SC_IOV_MAX: return 1024;
  case _SC_PHYS_PAGES: return 100000;
  default: return -1;
  }
}

static void *map(void *address, size_t length, int access, int flags, int file, off_t offset)
{
  return (void *)syscall(SYS_mmap, address, length, access, flags, file, offset);
}

void *mmap(void *address, size_t length, int access, int flags, int file, off_t offset)
{
  if (!(flags & MAP_ANONYMOUS)) return map(address, length, access, flags, file, offset);
  length = up(length);
  if (flags & MAP_FIXED) {
    if (is_within(address)) return MAP_FAILED;
    return map(address, length, access, flags, file, offset);
  }
  char *first = map(address, length + PAGE, access, flags, file, offset);
  if (first == MAP_FAILED) return first;
  char *begin = (char *)up((uintptr_t)first);
  if (begin > first) syscall(SYS_munmap, first, begin - first);
  if (begin < first + PAGE) syscall(SYS_munmap, begin + length, first + PAGE - begin);
  return begin;
}

void *mmap64(void *address, size_t length, int access, int flags, int file, off_t offset)
{
  return mmap(address, length, access, flags, file, offset);
}

int mprotect(void *address, size_t length, int access)
{
  return is_within(address) ? -1 : (int)syscall(SYS_mprotect, address, up(length), access);
}

int munmap(void *address, size_t length)
{
  return is_within(address) ? -1 : (int)syscall(SYS_munmap, address, up(length));
}

int madvise(void *address, size_t length, int advice)
{
  return is_within(address) ? -1 : (int)syscall(SYS_madvise, address, up(length), advice);
}

// The kernel would write a byte for each page of 4 KiB, which is more than the caller has room for.
int mincore(void *address, size_t length, unsigned char *resident)
{
  (void)address, (void)length, (void)resident;
  errno = ENOSYS;
  return -1;
}
