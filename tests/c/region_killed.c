/* Processes that are killed while they use a region. With an argument, only a message is brought about. */
#include "region_check.h"
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PROCESSES = 8, KILLS = 400, SLOTS = 40, KEPT = 200 };

static char path[64];
/* By process: how many additions were done. */
static volatile long *done;

static void use_for_ever(int number)
{
  unsigned char *blocks[SLOTS] = {NULL};
  unsigned state = (unsigned)getpid() * 2654435761u + 1;
  Vmalloc_t *vm = vmmopen(path, -1, 16 << 20);
  if (vm == NULL) perror("vmmopen");
  CHECK(vm != NULL);
  for (;;) {
    int at;
    state = state * 1103515245u + 12345;
    at = (int)(state >> 16) % SLOTS;
    if (state % 4096 == 0) CHECK(vmcompact(vm) == 0);
    if (state % 5 == 0) {
      CHECK(vmmvalue(vm, number, (void *)1, VM_MMADD) == (void *)(done[number] + 1));
      done[number]++;
    }
    if (blocks[at] != NULL && state % 3 == 0) {
      blocks[at] = (unsigned char *)vmresize(vm, blocks[at], state % 3000 + 1, VM_RSCOPY | VM_RSMOVE);
    } else {
      CHECK(vmfree(vm, blocks[at]) == 0);
      blocks[at] = (unsigned char *)vmalloc(vm, state % 500 + 1);
    }
    /* What the killed ones had stays, so the region is full some time. */
    if (blocks[at] != NULL) *blocks[at] = (unsigned char)state;
  }
}

static pid_t start(int number)
{
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) use_for_ever(number);
  return child;
}

/* Kills a process. One addition may have been done that it could not note. */
static void stop(pid_t child, int number, Vmalloc_t *vm)
{
  int status;
  CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  if (vm == NULL) return;
  long counted = (long)vmmvalue(vm, number, NULL, VM_MMGET);
  CHECK(counted == done[number] || counted == done[number] + 1);
  done[number] = counted;
}

static void pause_for(unsigned microseconds)
{
  struct timespec time = {0, (long)microseconds * 1000};
  nanosleep(&time, NULL);
}

/* What a process keeps stays as it is, and nothing that was counted is lost. */
static void processes_are_killed_at_random(void)
{
  pid_t children[PROCESSES];
  unsigned char *kept[KEPT];
  Vmalloc_t *vm = vmmopen(path, -1, 16 << 20);
  Vmstat_t st;
  int i, at, round;
  CHECK(vm != NULL);
  for (i = 0; i < KEPT; i++) {
    kept[i] = (unsigned char *)vmalloc(vm, (size_t)i + 1);
    CHECK(kept[i] != NULL);
    memset(kept[i], i, (size_t)i + 1);
  }
  for (i = 0; i < PROCESSES; i++) children[i] = start(i);
  for (round = 0; round < KILLS; round++) {
    i = round % PROCESSES;
    pause_for((unsigned)round * 7919 % 3000);
    stop(children[i], i, vm);
    children[i] = start(i);
    for (i = 0; i < KEPT; i += 20) {
      for (at = 0; at <= i; at++) CHECK(kept[i][at] == (unsigned char)i);
    }
  }
  for (i = 0; i < PROCESSES; i++) stop(children[i], i, vm);
  CHECK(vmdbcheck(vm) == 0);
  for (i = 0; i < KEPT; i++) {
    for (at = 0; at <= i; at++) CHECK(kept[i][at] == (unsigned char)i);
    CHECK(vmsize(vm, kept[i]) >= i + 1 && vmfree(vm, kept[i]) == 0);
  }
  CHECK(vmclear(vm) == 0 && vmdbcheck(vm) == 0);
  CHECK(vmstat(vm, &st) == 0 && st.n_busy == 0 && st.n_free == 1);
  CHECK(vmmcleanup(vm) != NULL && vmclose(vm) == 0);
}

/* "process could even exit, ... then restart and open the same region to continue working" */
static void a_region_can_be_opened_after_all_were_killed(void)
{
  int round, i;
  for (i = 0; i < PROCESSES; i++) done[i] = 0;
  for (round = 0; round < 100; round++) {
    pid_t children[3];
    Vmalloc_t *vm;
    for (i = 0; i < 3; i++) children[i] = start(i);
    /* Some are killed while they open or make it. */
    pause_for((unsigned)round * 7919 % 2000);
    for (i = 0; i < 3; i++) stop(children[i], i, NULL);
    vm = vmmopen(path, -1, 16 << 20);
    CHECK(vm != NULL);
    for (i = 0; i < 3; i++) {
      long counted = (long)vmmvalue(vm, i, NULL, VM_MMGET);
      CHECK(counted == done[i] || counted == done[i] + 1);
      done[i] = counted;
    }
    CHECK(vmdbcheck(vm) == 0);
    if (round % 10 == 9) {
      CHECK(vmclear(vm) == 0 && vmmcleanup(vm) != NULL);
      for (i = 0; i < PROCESSES; i++) done[i] = 0;
    }
    CHECK(vmclose(vm) == 0);
  }
}

/* Until one is killed inside a call. */
static void the_next_call_notices(void)
{
  Vmalloc_t *vm = vmmopen(path, -1, 16 << 20);
  void *block;
  CHECK(vm != NULL);
  do {
    pid_t child = start(0);
    while (vmmvalue(vm, 0, NULL, VM_MMGET) == NULL) pause_for(100);
    pause_for(1000);
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    done[0] = 0;
    if (vmbusy(vm) == 0) CHECK(vmclear(vm) == 0);
  } while (vmbusy(vm) == 0);
  block = vmalloc(vm, 100);
  CHECK(block != NULL && vmfree(vm, block) == 0 && vmbusy(vm) == 0 && vmdbcheck(vm) == 0);
  CHECK(vmmcleanup(vm) != NULL && vmclose(vm) == 0);
}

static pid_t parent;

static void stay_inside(Vmalloc_t *vm)
{
  if (vm->data == NULL || getpid() == parent) return;
  done[0] = 1;
  for (;;) pause();
}

static void *shared_memory(size_t bytes)
{
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  return memory;
}

/* A child is killed in memoryf of a region with VM_SHARE, in memory that it shares with its parent. */
static void a_child_ends_in_memoryf(Vmethod_t *method, enum growth growth)
{
  struct recorder *it = (struct recorder *)shared_memory(sizeof *it), *like = recorder(64, growth);
  int recovers = method != Vmlast && method != Vmpool, i;
  unsigned char *kept = NULL, *block;
  Vmalloc_t *vm;
  pid_t child;
  *it = *like;
  free(like);
  vm = vmopen(&it->disc, method, VM_SHARE);
  CHECK(vm != NULL && (vmset(vm, 0, 0) & ~VM_METHODS) == VM_SHARE);
  /* Some segments. */
  for (i = 0; i < 100; i++) {
    block = (unsigned char *)vmalloc(vm, 100);
    CHECK(block != NULL);
    if (i % 2 == 0 && i > 0) CHECK(vmfree(vm, block) == 0);
    if (i == 0) kept = (unsigned char *)memset(block, 7, 100);
  }
  done[0] = 0;
  it->on_memory = stay_inside;
  parent = getpid();
  child = fork();
  CHECK(child >= 0);
  while (child == 0) CHECK(vmalloc(vm, 100) != NULL);
  while (done[0] == 0) pause_for(100);
  CHECK(vmbusy(vm) == 1 && kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
  it->on_memory = NULL;
  if (recovers) {
    block = (unsigned char *)vmalloc(vm, 100);
    CHECK(block != NULL && vmbusy(vm) == 0 && vmdbcheck(vm) <= 0);
    for (i = 0; i < 100; i++) CHECK(kept[i] == 7);
    CHECK(vmsize(vm, kept) >= 100 && vmfree(vm, kept) == 0 && vmfree(vm, block) == 0);
  } else {
    FAILS_WITH(EBUSY, vmalloc(vm, 100));
    CHECK(vmfree(vm, kept) == -1 && errno == EBUSY && vmbusy(vm) == 0);
  }
  if (growth == GROWS) {
    CHECK(vmclear(vm) == 0);
    CHECK(vmalloc(vm, 100) != NULL && vmfree(vm, vmalloc(vm, 100)) == 0);
  }
  it->log[0] = 0;
  CHECK(vmclose(vm) == 0 && strchr(it->log, 'r') != NULL && strchr(it->log, 'R') == NULL);
  CHECK(munmap(it, sizeof *it) == 0);
}

static void children_end_in_memoryf(void)
{
  enum growth growth;
  for (growth = REFUSES; growth <= GROWS; growth++) {
    a_child_ends_in_memoryf(Vmbest, growth);
    a_child_ends_in_memoryf(Vmdebug, growth);
    a_child_ends_in_memoryf(Vmprofile, growth);
    a_child_ends_in_memoryf(Vmlast, growth);
    a_child_ends_in_memoryf(Vmpool, growth);
  }
  done[0] = 0;
}

int main(int argc, char **argv)
{
  int file;
  done = (volatile long *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  strcpy(path, "/tmp/region-killed-XXXXXX");
  file = mkstemp(path);
  CHECK(done != MAP_FAILED && file >= 0 && close(file) == 0);
  if (argc > 1 && strcmp(argv[1], "lost") == 0) {
    a_child_ends_in_memoryf(Vmpool, REFUSES);
    unlink(path);
  } else if (argc > 1) {
    the_next_call_notices();
  } else {
    children_end_in_memoryf();
    processes_are_killed_at_random();
    a_region_can_be_opened_after_all_were_killed();
    unlink(path);
  }
  puts("ok");
  return 0;
}
