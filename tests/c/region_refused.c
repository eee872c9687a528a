/* Shared regions under a system that refuses calls. Each call of each kind is refused once, alone: a
 * region that can't be opened says why, and a later vmmopen finds everything as it was. */
#include "raw_call.h"
#include "region_check.h"
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The kind of call that is refused, how many pass before, and errno. */
static const char *refused = "";
static int passing, code, is_done;

/* So many calls of fallocate are interrupted, and the most bytes that one asked for. */
static int interrupted;
static off_t longest;

static int is_refused(const char *kind)
{
  if (is_done || strcmp(kind, refused) != 0 || passing-- > 0) return 0;
  is_done = 1;
  errno = code;
  return 1;
}

/* Whether a call of fallocate is refused, or interrupted. */
static int is_allocation_refused(int mode, off_t length)
{
  if (mode == 0 && length > longest) longest = length;
  if (interrupted > 0) {
    interrupted--;
    errno = EINTR;
    return 1;
  }
  /* ftruncate is called where the file system has no fallocate. */
  if (strcmp(refused, "ftruncate") == 0) {
    errno = EOPNOTSUPP;
    return 1;
  }
  return is_refused("fallocate");
}

/* Some calls the library makes past their wrappers. */
long syscall(long number, ...)
{
  long more[6];
  va_list list;
  va_start(list, number);
  for (int i = 0; i < 6; i++) more[i] = va_arg(list, long);
  va_end(list);
  if (number == SYS_openat && is_refused("open")) return -1;
  if (number == SYS_fallocate && is_allocation_refused((int)more[1], more[3])) return -1;
  if (number == SYS_pread64 && is_refused("pread")) return -1;
  if (number == SYS_pwrite64 && is_refused("pwrite")) return -1;
  return told(raw(number, more[0], more[1], more[2], more[3], more[4], more[5]));
}

int ftruncate(int fd, off_t length) { return is_refused("ftruncate") ? -1 : (int)syscall(SYS_ftruncate, fd, length); }

int flock(int fd, int operation) { return is_refused("flock") ? -1 : (int)syscall(SYS_flock, fd, operation); }

int fstat(int fd, struct stat *status)
{
  return is_refused("fstat") ? -1 : (int)syscall(SYS_newfstatat, fd, "", status, AT_EMPTY_PATH);
}

ssize_t pread(int fd, void *into, size_t size, off_t offset) { return syscall(SYS_pread64, fd, into, size, offset); }

ssize_t pwrite(int fd, const void *from, size_t size, off_t offset)
{
  return syscall(SYS_pwrite64, fd, from, size, offset);
}

void *mmap(void *start, size_t size, int protection, int flags, int fd, off_t offset)
{
  /* Those of the C library and of malloc are not meant. */
  if ((flags & MAP_SHARED) != 0 && is_refused("mmap")) return MAP_FAILED;
  return (void *)syscall(SYS_mmap, start, size, protection, flags, fd, offset);
}

int madvise(void *start, size_t size, int advice)
{
  if (advice == MADV_REMOVE && is_refused("madvise")) return -1;
  return (int)syscall(SYS_madvise, start, size, advice);
}

int shmget(key_t key, size_t size, int flags)
{
  return is_refused("shmget") ? -1 : (int)syscall(SYS_shmget, key, size, flags);
}

void *shmat(int id, const void *start, int flags)
{
  return is_refused("shmat") ? (void *)-1 : (void *)syscall(SYS_shmat, id, start, flags);
}

int shmctl(int id, int command, struct shmid_ds *status)
{
  return is_refused("shmctl") ? -1 : (int)syscall(SYS_shmctl, id, command, status);
}

ssize_t readlink(const char *path, char *into, size_t size)
{
  return is_refused("readlink") ? -1 : syscall(SYS_readlinkat, AT_FDCWD, path, into, size);
}

int unlink(const char *path) { return is_refused("unlink") ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0); }

int access(const char *path, int mode)
{
  return is_refused("access") ? -1 : (int)syscall(SYS_faccessat, AT_FDCWD, path, mode);
}

/* What a region holds from one opening to the next. */
static const char text[] = "what was written stays";

/* Opens a region, or makes it; uses it in all ways; and closes it. Whatever is refused, only what
 * vmmopen itself needs makes it fail. */
static int uses(const char *path, int project, int is_removed)
{
  Vmalloc_t *vm;
  char *kept, *blocks[64];
  int i;
  errno = 0;
  vm = vmmopen(path, project, 1 << 20);
  if (vm == NULL) {
    /* A file whose length isn't known is taken for a damaged region. */
    CHECK(is_done && (errno == code || (errno == EINVAL && strcmp(refused, "fstat") == 0)));
    return 0;
  }
  kept = (char *)vmmvalue(vm, 1, NULL, VM_MMGET);
  if (kept == NULL) {
    kept = vmstrdup(vm, text);
    CHECK(kept != NULL && vmmvalue(vm, 1, kept, VM_MMSET) == kept);
  }
  CHECK(strcmp(kept, text) == 0);
  /* More than there is room for in a segment, so some are refused. */
  for (i = 0; i < 64; i++) {
    size_t size = (size_t)64 << i % 16;
    blocks[i] = (char *)vmalloc(vm, size);
    if (blocks[i] != NULL) memset(blocks[i], i, size);
  }
  CHECK(vmdbcheck(vm) == 0);
  for (i = 0; i < 64; i++) {
    size_t size = (size_t)64 << i % 16;
    if (blocks[i] == NULL) continue;
    CHECK(blocks[i][0] == i && blocks[i][size - 1] == i && vmfree(vm, blocks[i]) == 0);
  }
  CHECK(vmcompact(vm) == 0 || is_done);
  CHECK(vmdbcheck(vm) == 0);
  if (is_removed) vmmcleanup(vm);
  CHECK(vmclose(vm) == 0);
  return 1;
}

/* Uses and removes a region in another process, which does not wait for this one. */
static void another_uses(const char *path, int project)
{
  int status;
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    alarm(60);
    _exit(uses(path, project, 1) ? 0 : 1);
  }
  CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* Refuses the n-th call for each n. `was_made`: the region is there before. */
static void refuse_each(const char *kind, int errno_then, const char *path, int project, int was_made)
{
  int n;
  for (n = 0;; n++) {
    CHECK(n < 1000);
    refused = "";
    if (was_made) CHECK(uses(path, project, 0));
    refused = kind;
    code = errno_then;
    passing = n;
    is_done = 0;
    uses(path, project, !was_made);
    if (!is_done) break;
    /* The region is as before, or another process makes it now. It goes at the end. */
    refused = "";
    another_uses(path, project);
  }
  if (n == 0) fprintf(stderr, "no call of %s was made\n", kind);
  CHECK(n > 0);
  refused = "";
  if (was_made) CHECK(uses(path, project, 1));
}

/* A signal ends a call of fallocate on some file systems, so each call is short, and is made again. */
static void signals_do_no_harm(const char *path)
{
  Vmalloc_t *vm;
  interrupted = 3;
  vm = vmmopen(path, -1, 16 << 20);
  CHECK(vm != NULL && interrupted == 0);
  interrupted = 3;
  longest = 0;
  CHECK(vmalloc(vm, 8 << 20) != NULL);
  CHECK(interrupted == 0 && longest == 1 << 20);
  vmmcleanup(vm);
  CHECK(vmclose(vm) == 0);
}

/* Space that was got before the disk was full is given back. */
static void what_is_of_no_use_is_given_back(const char *path)
{
  struct stat before, after;
  Vmalloc_t *vm = vmmopen(path, -1, 16 << 20);
  CHECK(vm != NULL && stat(path, &before) == 0);
  refused = "fallocate";
  code = ENOSPC;
  passing = 4;
  is_done = 0;
  CHECK(vmalloc(vm, 8 << 20) == NULL && is_done);
  /* Of 4 MiB that were got, in blocks of 512 bytes. The file system takes and writes a few itself. */
  CHECK(stat(path, &after) == 0 && after.st_blocks < before.st_blocks + 2048);
  refused = "";
  CHECK(vmalloc(vm, 8 << 20) != NULL && vmdbcheck(vm) == 0);
  vmmcleanup(vm);
  CHECK(vmclose(vm) == 0);
}

int main(int argc, char **argv)
{
  static const struct { const char *kind; int code; } of_files[] = {
    {"fallocate", ENOSPC}, {"fallocate", EIO}, {"fallocate", EOPNOTSUPP}, {"flock", ENOLCK}, {"fstat", EBADF},
    {"open", EMFILE}, {"ftruncate", EIO}, {"pread", EIO}, {"mmap", ENOMEM}, {"mmap", ENODEV}, {"madvise", EOPNOTSUPP},
  }, of_segments[] = {
    {"access", EACCES}, {"shmget", EACCES}, {"shmat", ENOMEM}, {"shmctl", EPERM}, {"madvise", EOPNOTSUPP},
  };
  char path[512];
  size_t i;
  int was_made;
  CHECK(argc == 2);
  snprintf(path, sizeof path, "%s/refused", argv[1]);
  for (was_made = 0; was_made < 2; was_made++) {
    for (i = 0; i < sizeof of_files / sizeof of_files[0]; i++)
      refuse_each(of_files[i].kind, of_files[i].code, path, -1, was_made);
    for (i = 0; i < sizeof of_segments / sizeof of_segments[0]; i++)
      refuse_each(of_segments[i].kind, of_segments[i].code, path, 7, was_made);
  }
  /* Of a new file, and of one that goes. */
  refuse_each("pwrite", ENOSPC, path, -1, 0);
  refuse_each("readlink", EACCES, path, -1, 0);
  refuse_each("unlink", EACCES, path, -1, 0);
  signals_do_no_harm(path);
  what_is_of_no_use_is_given_back(path);
  puts("ok");
  return 0;
}
