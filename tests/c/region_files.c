/* Regions in files: where they lie, and copies of files. */
#include "region_check.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MANY = 200 };

static char directory[64];

static const char *in_directory(const char *name)
{
  static char paths[8][128];
  static int next;
  char *path = paths[next++ % 8];
  snprintf(path, sizeof paths[0], "%s/%s", directory, name);
  return path;
}

static Vmalloc_t *opened(const char *path, ssize_t size)
{
  Vmalloc_t *vm = vmmopen(path, -1, size);
  if (vm == NULL) fprintf(stderr, "vmmopen %s: %s\n", path, strerror(errno));
  CHECK(vm != NULL);
  return vm;
}

/* Waits for a child that must have done well. */
static void expect_exit(pid_t child)
{
  int status;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static const char *numbered(int number)
{
  char name[20];
  snprintf(name, sizeof name, "file-%d", number);
  return in_directory(name);
}

/* Each region is made while no other one is mapped, as in a process of its own. */
static void one_process_can_open_the_regions_of_many(void)
{
  static Vmalloc_t *regions[MANY];
  int i;
  for (i = 0; i < MANY; i++) CHECK(vmclose(opened(numbered(i), 1 << 20)) == 0);
  for (i = 0; i < MANY; i++) regions[i] = opened(numbered(i), 1 << 20);
  for (i = 0; i < MANY; i++) CHECK(vmmcleanup(regions[i]) != NULL && vmclose(regions[i]) == 0);
}

/* A file whose region was small can be given more room than it has addresses, by who is alone. */
static void who_is_alone_gives_a_region_more_addresses(void)
{
  const char *path = in_directory("grown");
  Vmalloc_t *vm = opened(path, 0), *other;
  void *data = vmdata(vm), *large;
  CHECK(vmmopen(path, -1, 100 << 20) == NULL && errno == ENOMEM);
  CHECK(vmclose(vm) == 0);
  vm = opened(path, 100 << 20);
  large = vmalloc(vm, 90 << 20);
  CHECK(vmdata(vm) == data && large != NULL);
  memset(large, 1, 90 << 20);
  CHECK(vmfree(vm, large) == 0 && vmcompact(vm) == 0);
  CHECK(vmclose(vm) == 0);
  /* It has them for good. */
  vm = opened(path, 0), other = opened(path, 200 << 20);
  CHECK(vmclose(other) == 0 && vmclose(vm) == 0);
  vm = vmmopenat(path, NULL, 0);
  CHECK(vm != NULL && vmclose(opened(path, (ssize_t)8 << 30)) == 0);
  CHECK(vmmcleanup(vm) == data && vmclose(vm) == 0);
}

static void set_limit(int which, rlim_t bytes)
{
  struct rlimit limit;
  CHECK(getrlimit(which, &limit) == 0);
  limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
  CHECK(setrlimit(which, &limit) == 0);
}

/* What the process has mapped, in bytes. */
static size_t mapped(void)
{
  FILE *file = fopen("/proc/self/statm", "r");
  size_t pages;
  CHECK(file != NULL && fscanf(file, "%zu", &pages) == 1 && fclose(file) == 0);
  return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void a_limit_of_addresses_leaves_most_to_others(void)
{
  const char *path = in_directory("limited");
  pid_t child = fork();
  if (child == 0) {
    size_t before = mapped();
    Vmalloc_t *vm;
    set_limit(RLIMIT_AS, before + ((size_t)4 << 30));
    vm = vmmopenat(path, NULL, 1 << 20);
    CHECK(vm != NULL && mapped() - before < ((size_t)1 << 30) && vmalloc(vm, 50 << 20) != NULL);
    CHECK(vmmcleanup(vm) != NULL && vmclose(vm) == 0);
    _exit(0);
  }
  expect_exit(child);
}

/* What is mapped is to be locked, and the process may not lock a window. */
static void a_limit_of_locked_memory_makes_windows_small(void)
{
  const char *path = in_directory("locked");
  FILE *file = fopen(path, "w");
  pid_t child;
  CHECK(file != NULL && fclose(file) == 0 && chmod(path, 0666) == 0 && chmod(directory, 0755) == 0);
  child = fork();
  if (child == 0) {
    Vmalloc_t *vm;
    CHECK(getuid() != 0 || setuid(65534) == 0);
    set_limit(RLIMIT_MEMLOCK, 32 << 20);
    if (mlockall(MCL_FUTURE) != 0) {
      fprintf(stderr, "not tried: mlockall: %s\n", strerror(errno));
      _exit(0);
    }
    vm = opened(path, 1 << 20);
    CHECK(vmalloc(vm, 500000) != NULL && vmclose(vm) == 0);
    _exit(0);
  }
  expect_exit(child);
}

static void copy(const char *from, const char *to)
{
  char text[4096];
  int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_EXCL, 0600);
  ssize_t length;
  CHECK(in >= 0 && out >= 0);
  while ((length = read(in, text, sizeof text)) > 0) CHECK(write(out, text, (size_t)length) == length);
  CHECK(length == 0 && close(in) == 0 && close(out) == 0);
}

/* Starts a process that is stopped in a call of a region. */
static pid_t stopped_inside(const char *path)
{
  Vmalloc_t *vm = opened(path, 1 << 20);
  pid_t child = fork();
  int status;
  if (child == 0) {
    CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
    for (;;) vmfree(vm, vmalloc(vm, 3000));
  }
  do {
    struct timespec moment = {0, 1000000};
    CHECK(kill(child, SIGCONT) == 0 && nanosleep(&moment, NULL) == 0 && kill(child, SIGSTOP) == 0);
    CHECK(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
  } while (!vmlocked(vm));
  CHECK(vmclose(vm) == 0);
  return child;
}

static void end(pid_t child)
{
  int status;
  CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status));
}

/* The lock in the copy names a process that has the other file. */
static void a_copy_of_a_region_in_use_is_another_region(void)
{
  const char *path = in_directory("used"), *other = in_directory("copied");
  pid_t child = stopped_inside(path);
  Vmalloc_t *vm;
  copy(path, other);
  alarm(100);
  /* Both have the same addresses, but this process has closed the first one. */
  vm = opened(other, 1 << 20);
  CHECK(vmlocked(vm) == 0 && vmalloc(vm, 3000) != NULL && vmdbcheck(vm) == 0);
  CHECK(vmmcleanup(vm) != NULL && vmclose(vm) == 0);
  alarm(0);
  end(child);
}

/* A process may be in a region although nothing has its file locked, as it may seem on overlayfs. */
static void nobody_waits_long_for_a_region_that_is_opened(void)
{
  const char *path = in_directory("left"), *other = in_directory("left-too");
  pid_t child = stopped_inside(path);
  uint64_t identity[2];
  struct stat status;
  Vmalloc_t *vm;
  int file;
  copy(path, other);
  /* The words by which the file is known not to be a copy. */
  file = open(other, O_RDWR);
  CHECK(file >= 0 && fstat(file, &status) == 0);
  identity[0] = status.st_dev, identity[1] = status.st_ino;
  CHECK(pwrite(file, identity, sizeof identity, 40) == sizeof identity && close(file) == 0);
  alarm(100);
  CHECK(vmmopen(other, -1, 1 << 20) == NULL && errno == EBUSY);
  alarm(0);
  end(child);
  vm = opened(other, 1 << 20);
  CHECK(vmlocked(vm) == 0 && vmalloc(vm, 3000) != NULL && vmclose(vm) == 0);
}

static int no_stream_is_open(void)
{
  return fcntl(0, F_GETFD) == -1 && fcntl(1, F_GETFD) == -1 && fcntl(2, F_GETFD) == -1;
}

/* What the library says on standard error would be written to the file. */
static void a_file_takes_no_number_of_a_closed_stream(void)
{
  const char *path = in_directory("beside");
  pid_t child = fork();
  if (child == 0) {
    Vmalloc_t *vm;
    int number;
    for (number = 0; number < 3; number++) close(number);
    vm = vmmopen(path, -1, 1 << 20);
    if (vm == NULL || !no_stream_is_open()) _exit(1);
    /* The region opens the file again. */
    for (number = 0; number < 64; number++) close(number);
    if (vmalloc(vm, 500000) == NULL || !no_stream_is_open()) _exit(2);
    _exit(fcntl(3, F_GETFD) == FD_CLOEXEC && vmclose(vm) == 0 ? 0 : 3);
  }
  expect_exit(child);
}

int main(void)
{
  strcpy(directory, "/tmp/region-files-XXXXXX");
  CHECK(mkdtemp(directory) != NULL);
  one_process_can_open_the_regions_of_many();
  who_is_alone_gives_a_region_more_addresses();
  a_limit_of_addresses_leaves_most_to_others();
  a_limit_of_locked_memory_makes_windows_small();
  a_copy_of_a_region_in_use_is_another_region();
  nobody_waits_long_for_a_region_that_is_opened();
  a_file_takes_no_number_of_a_closed_stream();
  {
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", directory);
    CHECK(system(command) == 0);
  }
  puts("ok");
  return 0;
}
