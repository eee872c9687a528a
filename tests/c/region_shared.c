/* Regions in files and shared segments. */
#include "region_check.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES = 8, ROUNDS = 100000, SLOTS = 50, PROJECT = 7 };

static char directory[64];

static const char *in_directory(const char *name)
{
  static char paths[64][128];
  static int next;
  char *path = paths[next++ % 64];
  snprintf(path, sizeof paths[0], "%s/%s", directory, name);
  return path;
}

static off_t length_of(const char *path)
{
  struct stat status;
  return stat(path, &status) == 0 ? status.st_size : -1;
}

static Vmalloc_t *opened(const char *path)
{
  Vmalloc_t *vm = vmmopen(path, -1, 0);
  if (vm == NULL) fprintf(stderr, "vmmopen: %s\n", strerror(errno));
  CHECK(vm != NULL);
  return vm;
}

static void is_refused(Vmalloc_t *vm, int code)
{
  if (vm != NULL || errno != code) fprintf(stderr, "not refused: %p, %s\n", (void *)vm, strerror(errno));
  CHECK(vm == NULL && errno == code);
}

/* Waits for a child that must have done well. */
static void expect_exit(pid_t child)
{
  int status;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

struct node {
  struct node *next;
  char text[100];
};

/* "In this case, not only the region may be used concurrently by different processes, it is also persistent." */
static void a_region_in_a_file_is_persistent(void)
{
  const char *path = in_directory("persistent");
  Vmalloc_t *vm = opened(path);
  void *data = vmdata(vm);
  struct node *list = NULL, *node;
  Vmstat_t st;
  int i;
  for (i = 0; i < 500; i++) {
    node = vmnewof(vm, NULL, struct node, 1, 0);
    CHECK(node != NULL);
    node->next = list;
    snprintf(node->text, sizeof node->text, "node %d", i);
    list = node;
  }
  CHECK(vmmvalue(vm, 1, list, VM_MMSET) == list);
  CHECK(vmset(vm, 0, 0) & VM_SHARE);
  CHECK(vmdisc(vm, Vmdcheap) != Vmdcheap);
  CHECK(vmclose(vm) == 0);

  vm = opened(path);
  CHECK(vmdata(vm) == data);
  for (i = 499, node = (struct node *)vmmvalue(vm, 1, NULL, VM_MMGET); node != NULL; i--, node = node->next) {
    char text[100];
    snprintf(text, sizeof text, "node %d", i);
    CHECK(strcmp(node->text, text) == 0 && vmsize(vm, node) >= (long)sizeof *node);
  }
  CHECK(i == -1 && vmdbcheck(vm) == 0);
  CHECK(vmstat(vm, &st) == 0 && st.n_busy == 501 && st.n_seg == 1);
  CHECK(vmclear(vm) == 0 && vmmvalue(vm, 1, NULL, VM_MMGET) == NULL);
  CHECK(vmclose(vm) == 0);
  vm = opened(path);
  CHECK(vmstat(vm, &st) == 0 && st.n_busy == 0);
  CHECK(vmclose(vm) == 0);
}

/* "process could even exit, move the file to a different but similar machine then restart and open the same region" */
static void a_file_can_be_moved(void)
{
  char here[256];
  const char *path = in_directory("moved"), *other = in_directory("elsewhere");
  Vmalloc_t *vm = opened(path), *again;
  CHECK(vmmvalue(vm, 5, (void *)55, VM_MMSET) == (void *)55);
  CHECK(rename(path, other) == 0);
  again = opened(other);
  CHECK(again != vm && vmdata(again) == vmdata(vm));
  CHECK(vmmvalue(again, 5, NULL, VM_MMGET) == (void *)55);
  CHECK(vmclose(vm) == 0 && vmmvalue(again, 5, (void *)1, VM_MMADD) == (void *)56);
  CHECK(vmclose(again) == 0);
  CHECK(getcwd(here, sizeof here) != NULL && chdir(directory) == 0);
  vm = opened("./elsewhere");
  CHECK(vmmvalue(vm, 5, NULL, VM_MMGET) == (void *)56);
  CHECK(vmclose(vm) == 0 && chdir(here) == 0);
}

static void copy(const char *from, const char *to, size_t bytes)
{
  char *text = (char *)calloc(1, bytes);
  int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ssize_t length;
  CHECK(in >= 0 && out >= 0);
  length = read(in, text, bytes);
  CHECK(length >= 0 && write(out, text, (size_t)length) == length);
  CHECK(close(in) == 0 && close(out) == 0);
  free(text);
}

/* "When project >= 0 ... NULL" for what is no region; nothing is lost. */
static void what_is_no_region_is_refused(void)
{
  const char *path = in_directory("other"), *cut = in_directory("cut");
  int file, at;
  char text[6];
  Vmalloc_t *vm;
  is_refused(vmmopen(NULL, -1, 0), EINVAL);
  is_refused(vmmopen("", -1, 0), EINVAL);
  is_refused(vmmopen(path, -1, -1), EINVAL);
  is_refused(vmmopen(in_directory("none/such"), -1, 0), ENOENT);
  is_refused(vmmopen(directory, -1, 0), EISDIR);
  CHECK(mkfifo(in_directory("fifo"), 0600) == 0);
  is_refused(vmmopen(in_directory("fifo"), -1, 0), EINVAL);
  is_refused(vmmopenat(in_directory("odd"), (void *)4097, 0), EINVAL);
  is_refused(vmmopen(in_directory("large"), -1, SSIZE_MAX), ENOMEM);

  file = open(path, O_RDWR | O_CREAT, 0600);
  CHECK(file >= 0 && write(file, "hello", 5) == 5);
  is_refused(vmmopen(path, -1, 0), EINVAL);
  CHECK(length_of(path) == 5 && pread(file, text, 6, 0) == 5 && memcmp(text, "hello", 5) == 0);
  /* Zeros are no region either. */
  CHECK(ftruncate(file, 0) == 0 && ftruncate(file, 8192) == 0);
  is_refused(vmmopen(path, -1, 0), EINVAL);
  /* An empty file is one to be. */
  CHECK(ftruncate(file, 0) == 0 && close(file) == 0);
  vm = opened(path);
  CHECK(vmalloc(vm, 100000) != NULL && vmclose(vm) == 0);

  for (at = 8; at < 100000; at = at * 2 + 1) {
    copy(path, cut, (size_t)at);
    is_refused(vmmopen(cut, -1, 0), EINVAL);
  }
  /* An earlier layout, and a later one. */
  copy(path, cut, 200000);
  for (at = 1; at <= 3; at += 2) {
    text[0] = (char)at;
    file = open(cut, O_RDWR);
    CHECK(file >= 0 && pwrite(file, text, 1, 7) == 1 && close(file) == 0);
    is_refused(vmmopen(cut, -1, 0), EINVAL);
  }
}

/* A region whose bytes were changed at random is refused, or can be used without a crash. */
static void what_is_damaged_does_no_harm(void)
{
  const char *path = in_directory("whole"), *broken = in_directory("broken");
  Vmalloc_t *vm = opened(path);
  unsigned state = 1;
  int i, round;
  void *blocks[300];
  for (i = 0; i < 300; i++) blocks[i] = vmalloc(vm, (size_t)i * 7 % 400);
  for (i = 0; i < 300; i += 2) CHECK(vmfree(vm, blocks[i]) == 0);
  for (i = 0; i < 10; i++) CHECK(vmmvalue(vm, i, (void *)7, VM_MMSET) != NULL);
  CHECK(vmclose(vm) == 0);
  for (round = 0; round < 300; round++) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child != 0) {
      expect_exit(child);
      continue;
    }
    state = (unsigned)round * 2654435761u + 1;
    copy(path, broken, 300000);
    int file = open(broken, O_RDWR), silent = open("/dev/null", O_WRONLY);
    CHECK(file >= 0 && silent >= 0 && dup2(silent, 2) == 2);
    for (i = 0; i <= round % 8; i++) {
      unsigned char byte;
      off_t at;
      state = state * 1103515245u + 12345;
      /* The first pages hold the core data. */
      at = (state >> 8) % (round % 2 ? 8192 : 60000);
      byte = (unsigned char)(state >> 3);
      CHECK(pwrite(file, &byte, 1, at) == 1);
    }
    alarm(20);
    vm = vmmopen(broken, -1, 0);
    if (vm == NULL) _exit(errno == EINVAL || errno == EADDRINUSE || errno == ENOMEM ? 0 : 1);
    for (i = 0; i < 10; i++) vmmvalue(vm, i, (void *)1, VM_MMADD);
    for (i = 1; i < 300; i += 2) vmfree(vm, blocks[i]);
    for (i = 0; i < 300; i++) blocks[i] = vmalloc(vm, (size_t)i);
    for (i = 0; i < 300; i++) vmresize(vm, blocks[i], 500, VM_RSCOPY);
    vmcompact(vm);
    vmdbcheck(vm);
    vmclear(vm);
    vmclose(vm);
    _exit(0);
  }
}

/* "The address is chosen with hope to minimize collision": what lies there stays. */
static void nothing_else_is_replaced(void)
{
  const char *path = in_directory("placed");
  Vmalloc_t *vm = opened(path);
  char *data = (char *)vmdata(vm), *page;
  void *place = vmmaddress(1 << 30), *other = vmmaddress(1 << 20);
  CHECK(place != NULL && other != NULL && place != other && (size_t)place % 4096 == 0);
  CHECK(vmclose(vm) == 0);
  /* The region begins at the page before its core data. */
  page = (char *)mmap(data, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  CHECK(page == data);
  *page = 7;
  is_refused(vmmopen(path, -1, 0), EADDRINUSE);
  CHECK(*page == 7 && munmap(page, 4096) == 0);
  vm = opened(path);
  CHECK(vmdata(vm) == data && vmclose(vm) == 0);
  CHECK(vmmaddress((size_t)-1) == NULL);

  /* "If base is not NULL, it is the address to map the data to." */
  vm = vmmopenat(in_directory("at"), other, 0);
  CHECK(vm != NULL && vmsegment(vm, vmdata(vm)) == (char *)other + 4096);
  is_refused(vmmopenat(in_directory("at"), place, 0), EINVAL);
  CHECK(vmclose(vm) == 0);
  is_refused(vmmopenat(in_directory("at"), place, 0), EINVAL);
}

static size_t fill_up(Vmalloc_t *vm)
{
  size_t bytes = 0;
  while (vmalloc(vm, 10000) != NULL) bytes += 10000;
  CHECK(errno == ENOMEM);
  return bytes;
}

/* "a single memory segment guaranteed to be at least as large as size" */
static void a_region_has_the_room_that_was_asked_for(void)
{
  const char *path = in_directory("room");
  Vmalloc_t *vm = vmmopen(path, -1, 1 << 20), *larger;
  size_t bytes;
  Vmstat_t st;
  CHECK(vm != NULL && length_of(path) < 200000);
  bytes = fill_up(vm);
  CHECK(bytes > (1 << 20) - 30000 && bytes <= 1 << 20);
  CHECK(vmstat(vm, &st) == 0 && st.n_seg == 1 && st.extent <= 1 << 20);
  larger = vmmopen(path, -1, 3 << 20);
  CHECK(larger != NULL);
  /* It can grow so far for all who have it. */
  CHECK(fill_up(vm) > (2 << 20) - 30000);
  is_refused(vmmopen(path, -1, (ssize_t)1 << 40), ENOMEM);
  CHECK(vmclear(vm) == 0 && vmcompact(vm) == 0);
  CHECK(vmstat(vm, &st) == 0 && st.extent < 100000);
  CHECK(vmclose(vm) == 0 && vmclose(larger) == 0);
  /* A region of vmmopenat grows with its file. */
  vm = vmmopenat(in_directory("grows"), NULL, 100);
  CHECK(vm != NULL && vmalloc(vm, 100 << 20) != NULL && length_of(in_directory("grows")) > 100 << 20);
  CHECK(vmmcleanup(vm) == vmdata(vm) && vmclose(vm) == 0);
  CHECK(length_of(in_directory("grows")) == -1);
  /* Also if the process has it already. */
  vm = vmmopen(in_directory("grows"), -1, 0);
  larger = vmmopenat(in_directory("grows"), NULL, 100);
  CHECK(vm != NULL && larger != NULL && vmalloc(vm, 50 << 20) != NULL);
  CHECK(vmclose(larger) == 0 && vmmcleanup(vm) == vmdata(vm) && vmclose(vm) == 0);
}

static void set_longest_file(rlim_t bytes)
{
  struct rlimit limit = {bytes, RLIM_INFINITY};
  CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
  limit.rlim_cur = bytes;
  CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

/* A file that may not become longer is a full one: the signal SIGXFSZ, which ends the process, does not come. */
static void a_file_has_a_longest_length(void)
{
  const char *path = in_directory("longest"), *other = in_directory("none");
  pid_t child = fork();
  if (child == 0) {
    Vmalloc_t *vm = vmmopen(path, -1, 64 << 20);
    size_t bytes;
    CHECK(vm != NULL);
    set_longest_file(4 << 20);
    bytes = fill_up(vm);
    CHECK(bytes > 2 << 20 && bytes < 4 << 20 && length_of(path) <= 4 << 20 && vmdbcheck(vm) == 0);
    FAILS_WITH(ENOMEM, vmalloc(vm, 5 << 20));
    set_longest_file(100);
    is_refused(vmmopen(other, -1, 0), EFBIG);
    set_longest_file(0);
    is_refused(vmmopen(other, -1, 0), EFBIG);
    CHECK(vmclear(vm) == 0 && vmalloc(vm, 1 << 20) != NULL && vmclose(vm) == 0);
    vm = opened(path);
    CHECK(vmclose(vm) == 0);
    _exit(0);
  }
  expect_exit(child);
}

static void *open_the_region(void *path)
{
  Vmalloc_t *vm = opened((const char *)path);
  CHECK(vmclose(vm) == 0);
  return NULL;
}

/* Returns how many descriptors of an open file the process has. */
static int descriptors_of(int file)
{
  struct stat wanted, other;
  int at, count = 0;
  CHECK(fstat(file, &wanted) == 0);
  for (at = 0; at < 64; at++)
    count += fstat(at, &other) == 0 && other.st_dev == wanted.st_dev && other.st_ino == wanted.st_ino;
  return count;
}

/* A process that makes a region may be stopped there. Threads that wait for it hold nobody up. */
static void regions_are_opened_while_another_one_is_made(void)
{
  const char *path = in_directory("being-made");
  int file = open(path, O_RDWR | O_CREAT, 0600);
  /* What a region that is being made begins with: so far its maker is this process. */
  uint64_t front[2] = {0, (uint64_t)getpid()};
  pthread_t thread;
  Vmalloc_t *vm;
  memcpy(front, "lumavm?\2", 8);
  CHECK(file >= 0 && flock(file, LOCK_EX) == 0 && write(file, front, sizeof front) == sizeof front);
  CHECK(pthread_create(&thread, NULL, open_the_region, (void *)path) == 0);
  while (descriptors_of(file) < 2) sched_yield();
  vm = vmopen(Vmdcheap, Vmbest, 0);
  CHECK(vm != NULL && vmregion(vmalloc(vm, 10)) == vm && vmclose(vm) == 0);
  CHECK(flock(file, LOCK_UN) == 0 && pthread_join(thread, NULL) == 0 && close(file) == 0);
}

/* "If several handles belong to the same segment, it returns the one that obtained the segment." */
static void the_first_handle_has_the_blocks(void)
{
  const char *path = in_directory("handles");
  Vmalloc_t *first = vmmopen(path, -1, 0), *second = vmmopen(path, -1, 0), *third = vmmopen(path, -1, 0);
  void *block = vmalloc(third, 100);
  CHECK(block != NULL && vmregion(block) == first);
  CHECK(vmclose(first) == 0 && vmregion(block) == second);
  CHECK(vmclose(second) == 0 && vmregion(block) == third && vmmcleanup(third) != NULL && vmclose(third) == 0);
}

/* "Flags that vmset changes hold for all processes, until no process has the region." */
static void flags_last_as_long_as_a_process_has_the_region(int project)
{
  const char *path = in_directory("flags");
  Vmalloc_t *vm = vmmopen(path, project, 0), *second;
  Vmstat_t st;
  CHECK(vm != NULL && vmset(vm, VM_DBCHECK | VM_TRACE, 1) == (VM_MTBEST | VM_SHARE));
  second = vmmopen(path, project, 0);
  CHECK(vmset(second, 0, 0) == (VM_MTBEST | VM_SHARE | VM_DBCHECK | VM_TRACE));
  CHECK(vmstat(vm, &st) == 0 && st.mode == (VM_MTBEST | VM_SHARE | VM_DBCHECK | VM_TRACE));
  CHECK(vmclose(vm) == 0 && vmclose(second) == 0);
  vm = vmmopen(path, project, 0);
  CHECK(vm != NULL && vmset(vm, 0, 0) == (VM_MTBEST | VM_SHARE));
  CHECK(vmmcleanup(vm) == vmdata(vm) && vmclose(vm) == 0);
  unlink(path);
}

/* "vmmcleanup sets region up to remove backing store or shmid on closing." */
static void a_region_is_removed_if_that_is_wanted(void)
{
  const char *path = in_directory("removed"), *other = in_directory("renamed");
  Vmalloc_t *vm = opened(path), *again = opened(path), *plain = vmopen(Vmdcheap, Vmbest, 0);
  vmmrelease(vm, 0);
  CHECK(vmclose(vm) == 0 && vmclose(again) == 0 && length_of(path) > 0);
  vm = opened(path), again = opened(path);
  vmmrelease(vm, 1);
  CHECK(rename(path, other) == 0);
  CHECK(vmclose(vm) == 0 && length_of(other) > 0);
  CHECK(vmclose(again) == 0 && length_of(other) == -1);
  CHECK(vmmcleanup(plain) == NULL && errno == EINVAL);
  CHECK(vmmcleanup(NULL) == NULL && errno == EINVAL);
  CHECK(vmclose(plain) == 0);
}

/* "vmmvalue manages pairs of key and value in a region"; "vmmset ... returns the current data (before setting)" */
static void regions_hold_values(void)
{
  Vmethod_t *with[] = {Vmbest, Vmlast, Vmdebug, Vmprofile};
  Vmalloc_t *vm;
  size_t i;
  for (i = 0; i < sizeof with / sizeof *with; i++) {
    vm = vmopen(Vmdcheap, with[i], 0);
    CHECK(vmmvalue(vm, 3, NULL, VM_MMGET) == NULL);
    CHECK(vmmvalue(vm, 3, (void *)30, VM_MMSET) == (void *)30);
    CHECK(vmmvalue(vm, -3, (void *)5, VM_MMADD) == (void *)5);
    CHECK(vmmvalue(vm, -3, (void *)-7L, VM_MMADD) == (void *)-2L);
    CHECK(vmmset(vm, 3, (void *)40, 1) == (void *)30);
    CHECK(vmmset(vm, 3, (void *)50, 0) == (void *)40);
    CHECK(vmmset(vm, 4, (void *)60, 1) == (void *)60);
    CHECK(vmmset(vm, 5, (void *)60, 0) == NULL);
    CHECK(vmmvalue(vm, 3, NULL, 3) == NULL && errno == EINVAL);
    CHECK(vmclear(vm) == 0 && vmmvalue(vm, 3, NULL, VM_MMGET) == NULL);
    CHECK(vmclose(vm) == 0);
  }
  vm = vmopen(Vmdcheap, Vmpool, 0);
  CHECK(vmmvalue(vm, 3, (void *)30, VM_MMSET) == NULL && errno == EINVAL);
  CHECK(vmclose(vm) == 0);
  errno = 0;
  CHECK(vmmvalue(Vmheap, 3, (void *)30, VM_MMSET) == NULL && errno == EINVAL);
  CHECK(vmmvalue(NULL, 3, (void *)30, VM_MMSET) == NULL);
}

/* Uses a region, and counts with two keys. */
static void use(Vmalloc_t *vm, unsigned seed)
{
  unsigned char *blocks[SLOTS] = {NULL};
  size_t sizes[SLOTS] = {0};
  unsigned state = seed * 2654435761u + 1;
  int round, at;
  for (round = 0; round < ROUNDS; round++) {
    unsigned char mark = (unsigned char)seed;
    state = state * 1103515245u + 12345;
    at = (int)(state >> 16) % SLOTS;
    if (round % 10 == 0) CHECK(vmmvalue(vm, 1, (void *)1, VM_MMADD) != NULL);
    if (blocks[at] != NULL) {
      CHECK(blocks[at][0] == mark && blocks[at][sizes[at] - 1] == mark);
      CHECK(vmfree(vm, blocks[at]) == 0);
    }
    sizes[at] = (state >> 8) % 200 + 1;
    blocks[at] = (unsigned char *)vmalloc(vm, sizes[at]);
    CHECK(blocks[at] != NULL);
    memset(blocks[at], mark, sizes[at]);
  }
  for (at = 0; at < SLOTS; at++) CHECK(vmfree(vm, blocks[at]) == 0);
  CHECK(vmmvalue(vm, 2, (void *)-1L, VM_MMADD) != NULL);
}

/* Each process opens the region itself, and the first one makes it. */
static void processes_share_a_region(const char *path, int project)
{
  pid_t children[PROCESSES];
  Vmstat_t st;
  Vmalloc_t *vm;
  int i;
  for (i = 0; i < PROCESSES; i++) {
    children[i] = fork();
    CHECK(children[i] >= 0);
    if (children[i] == 0) {
      vm = vmmopen(path, project, 1 << 20);
      CHECK(vm != NULL);
      use(vm, (unsigned)i + 1);
      CHECK(vmclose(vm) == 0);
      _exit(0);
    }
  }
  for (i = 0; i < PROCESSES; i++) expect_exit(children[i]);
  vm = vmmopen(path, project, 1 << 20);
  CHECK(vm != NULL);
  CHECK(vmmvalue(vm, 1, NULL, VM_MMGET) == (void *)(PROCESSES * (ROUNDS / 10)));
  CHECK(vmmvalue(vm, 2, NULL, VM_MMGET) == (void *)(long)-PROCESSES);
  CHECK(vmstat(vm, &st) == 0 && st.n_busy == 2 && vmdbcheck(vm) == 0 && vmbusy(vm) == 0);
  CHECK(vmmcleanup(vm) == vmdata(vm) && vmclose(vm) == 0);
}

/* "file and project are used in a call to ftok(3) to get a key" */
static void a_region_lies_in_a_segment(void)
{
  const char *path = in_directory("keyed");
  Vmalloc_t *vm = vmmopen(path, PROJECT, 1 << 20), *again;
  void *data, *page;
  int segment = shmget(ftok(path, PROJECT), 0, 0);
  size_t bytes;
  CHECK(vm != NULL && segment >= 0 && length_of(path) == 0);
  data = vmdata(vm);
  CHECK(vmmvalue(vm, 1, (void *)11, VM_MMSET) != NULL);
  again = vmmopen(path, PROJECT, 0);
  CHECK(again != NULL && vmdata(again) == data && vmclose(again) == 0);
  is_refused(vmmopen(path, PROJECT, 2 << 20), ENOMEM);
  CHECK(vmclose(vm) == 0);
  is_refused(vmmopen(path, PROJECT, 2 << 20), ENOMEM);
  page = mmap(data, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  CHECK(page == data);
  is_refused(vmmopen(path, PROJECT, 0), EADDRINUSE);
  CHECK(munmap(page, 4096) == 0);
  vm = vmmopen(path, PROJECT, 0);
  CHECK(vm != NULL && vmdata(vm) == data && vmmvalue(vm, 1, NULL, VM_MMGET) == (void *)11);
  bytes = fill_up(vm);
  CHECK(bytes > (1 << 20) - 30000);
  CHECK(vmclear(vm) == 0 && vmcompact(vm) == 0 && fill_up(vm) == bytes);
  CHECK(vmmcleanup(vm) == data && vmclose(vm) == 0);
  CHECK(shmget(ftok(path, PROJECT), 0, 0) == -1 && errno == ENOENT && length_of(path) == 0);

  /* A segment of another program. */
  segment = shmget(ftok(path, PROJECT), 100000, IPC_CREAT | 0600);
  page = shmat(segment, NULL, 0);
  CHECK(segment >= 0 && page != (void *)-1);
  strcpy((char *)page + 3000, "something");
  is_refused(vmmopen(path, PROJECT, 0), EINVAL);
  CHECK(strcmp((char *)page + 3000, "something") == 0);
  CHECK(shmdt(page) == 0 && shmctl(segment, IPC_RMID, NULL) == 0);
}

/* A program may close descriptors that are not its own, and go on with a region that was moved. */
static void a_foreign_descriptor_is_left_alone(void)
{
  const char *path = in_directory("closed"), *moved = in_directory("closed-moved");
  const char *other = in_directory("innocent");
  Vmalloc_t *vm = vmmopen(path, -1, 8 << 20);
  int file, blocks = 0;
  CHECK(vm != NULL && rename(path, moved) == 0);
  for (file = 3; file < 100; file++) close(file);
  for (file = 3; file < 20; file++) CHECK(open(other, O_RDWR | O_CREAT, 0600) == file);
  while (vmalloc(vm, 10000) != NULL) blocks++;
  CHECK(blocks > 800 && vmdbcheck(vm) == 0);
  /* Now it has a descriptor again, which goes too. */
  CHECK(close(20) == 0);
  vmmcleanup(vm);
  CHECK(vmclose(vm) == 0 && length_of(moved) == -1);
  CHECK(length_of(other) == 0 && write(3, "x", 1) == 1);
  for (file = 3; file < 20; file++) CHECK(close(file) == 0);
}

int main(void)
{
  strcpy(directory, "/tmp/region-shared-XXXXXX");
  CHECK(mkdtemp(directory) != NULL);
  a_region_in_a_file_is_persistent();
  a_file_can_be_moved();
  what_is_no_region_is_refused();
  what_is_damaged_does_no_harm();
  nothing_else_is_replaced();
  a_region_has_the_room_that_was_asked_for();
  a_file_has_a_longest_length();
  regions_are_opened_while_another_one_is_made();
  the_first_handle_has_the_blocks();
  flags_last_as_long_as_a_process_has_the_region(-1);
  flags_last_as_long_as_a_process_has_the_region(PROJECT);
  a_region_is_removed_if_that_is_wanted();
  regions_hold_values();
  processes_share_a_region(in_directory("by-processes"), -1);
  processes_share_a_region(in_directory("by-key"), PROJECT);
  a_region_lies_in_a_segment();
  a_foreign_descriptor_is_left_alone();
  {
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", directory);
    CHECK(system(command) == 0);
  }
  puts("ok");
  return 0;
}
