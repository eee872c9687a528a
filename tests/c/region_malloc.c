/*
 * malloc over regions: Vmregion. A function for each statement of vmalloc(3), Malloc-compatible functions,
 * and of vmalloc.h about it.
 */
#include "lumalloc.h"
#include "region_check.h"
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 6, ROUNDS = 30000, FORKS = 10, MANY = 3000 };
static int stop;

/* Blocks that do not fit into the caches, so that the next call of the thread comes to the region. */
static void pass_the_cache(void)
{
  static void *blocks[MANY];
  int at;
  for (at = 0; at < MANY; at++) blocks[at] = malloc(96);
  for (at = 0; at < MANY; at++) free(blocks[at]);
}

static void use_region(Vmalloc_t *vm)
{
  Vmregion = vm;
  pass_the_cache();
}

static long busy(Vmalloc_t *vm)
{
  Vmstat_t st;
  CHECK(vmstat(vm, &st) == 0);
  return st.n_busy;
}

/* "They allocate via the Vmregion region which is initially set to be Vmheap." */
static void all_kinds_of_calls_go_to_the_region(void)
{
  Vmalloc_t *vm = vmopen(Vmdcsystem, Vmbest, 0);
  void *block, *other;
  char *bytes;
  size_t at;
  CHECK(Vmregion == Vmheap);
  block = malloc(100);
  CHECK(vmregion(block) == Vmheap);
  use_region(vm);
  CHECK(busy(vm) == 0);
  /* What came from the heap goes back to it, or moves from it. */
  block = realloc(block, 100000);
  CHECK(vmregion(block) == vm && busy(vm) == 1);
  free(block);
  CHECK(busy(vm) == 0);
  block = malloc(100);
  CHECK(vmregion(block) == vm && malloc_usable_size(block) >= 100);
  CHECK((block = realloc(block, 50000)) != NULL && vmregion(block) == vm);
  free(block);
  bytes = calloc(30, 1000);
  CHECK(vmregion(bytes) == vm);
  for (at = 0; at < 30000; at++) CHECK(bytes[at] == 0);
  memset(bytes, 1, 30000);
  free(bytes);
  bytes = calloc(10, 10);
  CHECK(vmregion(bytes) == vm);
  for (at = 0; at < 100; at++) CHECK(bytes[at] == 0);
  cfree(bytes);
  block = memalign(4096, 10);
  CHECK(vmregion(block) == vm && (size_t)block % 4096 == 0);
  free(block);
  CHECK(posix_memalign(&block, 64, 100) == 0 && vmregion(block) == vm && (size_t)block % 64 == 0);
  free(block);
  block = valloc(1);
  CHECK(vmregion(block) == vm && (size_t)block % 4096 == 0);
  free(block);
  block = strdup("text");
  CHECK(vmregion(block) == vm && strcmp(block, "text") == 0);
  free_sized(block, 5);
  block = malloc(0);
  other = malloc(0);
  CHECK(block != NULL && other != NULL && block != other && vmregion(block) == vm);
  free(block);
  free(other);
  free(NULL);
  CHECK(busy(vm) == 0);
  /* "The total of Malloc regions." */
  {
    Vmstat_t st;
    CHECK(vmstat(NULL, &st) == 0 && st.n_region == 1 && st.n_open > 3000 && st.n_busy == 0);
  }
  CHECK(vmclose(vm) == 0 && Vmregion == Vmheap);
  free(malloc(10));
}

/* Calls that name an arena or a cache stay in the heap; blocks go back to where they came from. */
static void calls_with_flags_stay_in_the_heap(void)
{
  Vmalloc_t *vm = vmopen(Vmdcsystem, Vmbest, 0);
  void *block;
  use_region(vm);
  block = mallocx(100, MALLOCX_TCACHE_NONE);
  CHECK(vmregion(block) == Vmheap);
  dallocx(block, MALLOCX_TCACHE_NONE);
  block = mallocx(100, MALLOCX_ARENA(0));
  CHECK(vmregion(block) == Vmheap && busy(vm) == 0);
  block = rallocx(block, 200, 0);
  free(block);
  block = mallocx(100, 0);
  CHECK(vmregion(block) == vm && sallocx(block, 0) >= 100 && xallocx(block, 5000, 0, 0) >= 100);
  block = rallocx(block, 70000, MALLOCX_ZERO);
  CHECK(block != NULL && ((char *)block)[69999] == 0);
  dallocx(block, MALLOCX_TCACHE_NONE);
  block = malloc(20000);
  CHECK(vmregion(block) == vm);
  block = rallocx(block, 40000, MALLOCX_ARENA(0));
  CHECK(vmregion(block) == Vmheap);
  sdallocx(block, 40000, 0);
  CHECK(busy(vm) == 0 && vmclose(vm) == 0);
}

/* A region over Vmdcheap lies in blocks of the heap. What lies inside those is not the heap's. */
static void blocks_inside_blocks_of_the_heap_are_told_apart(void)
{
  Vmalloc_t *vm = vmopen(Vmdcheap, Vmbest, 0);
  void *blocks[200];
  size_t at;
  use_region(vm);
  for (at = 0; at < 200; at++) {
    blocks[at] = malloc(8 + at * 8);
    CHECK(vmregion(blocks[at]) == vm);
  }
  for (at = 0; at < 200; at += 2) free(blocks[at]);
  for (at = 1; at < 200; at += 2) CHECK((blocks[at] = realloc(blocks[at], 10000 + at)) != NULL);
  for (at = 1; at < 200; at += 2) free(blocks[at]);
  CHECK(busy(vm) == 0 && vmclose(vm) == 0);
}

/* Vmlast frees the last block alone, and malloc goes on. */
static void the_last_block_is_freed(void)
{
  Vmalloc_t *vm = vmopen(Vmdcsystem, Vmlast, 0);
  char *first, *second;
  use_region(vm);
  first = malloc(100);
  strcpy(first, "first");
  second = malloc(100);
  CHECK(vmsegment(vm, first) != NULL && vmsegment(vm, second) != NULL);
  CHECK(malloc_usable_size(second) >= 100 && malloc_usable_size(first) == 0);
  first = realloc(first, 1000);
  CHECK(strcmp(first, "first") == 0);
  free(first);
  Vmregion = Vmheap;
  CHECK(vmclose(vm) == 0);
}

/* A pool serves the size of its first block, and the heap all others. */
static void a_pool_serves_one_size(void)
{
  Vmalloc_t *vm = vmopen(Vmdcsystem, Vmpool, 0);
  char *block, *other;
  CHECK(vmalloc(vm, 48) != NULL);
  use_region(vm);
  block = malloc(48);
  other = malloc(1000);
  CHECK(vmsize(vm, block) == 48 && vmregion(other) == Vmheap);
  strcpy(block, "block");
  block = realloc(block, 300);
  CHECK(strcmp(block, "block") == 0 && vmregion(block) == Vmheap);
  free(block);
  free(other);
  CHECK(busy(vm) == 1 && vmclose(vm) == 0);
}

/* Compilers believe that malloc changes no variable of the program. */
static volatile int told_bad, told_no_memory;
static void *volatile spare;

static void note(Vmalloc_t *vm, int type, void *obj)
{
  (void)vm;
  (void)obj;
  told_bad += type == VM_BADADDR;
  if (type == VM_NOMEM) {
    told_no_memory++;
    /* "The region is unlocked, so the exceptf function may free blocks." */
    free(spare);
    spare = NULL;
  }
}

/* Events of malloc's region are announced, as those of any other. */
static void the_discipline_is_told(void)
{
  struct recorder *it = recorder(64, REFUSES);
  Vmalloc_t *vm = vmopen(&it->disc, Vmbest, 0);
  char *block;
  CHECK(vm != NULL);
  it->on_event = note;
  it->left = 70000;
  Vmregion = vm;
  /* No miss yet: the caches of this thread serve small blocks. */
  spare = malloc(40000);
  CHECK(vmregion(spare) == vm);
  it->left = 0;
  it->returns[VM_NOMEM] = 1;
  block = malloc(30000);
  CHECK(block != NULL && told_no_memory == 1 && spare == NULL);
  it->returns[VM_NOMEM] = -1;
  errno = 0;
  CHECK(malloc(60000) == NULL && errno == ENOMEM && told_no_memory == 2);
  CHECK(realloc(block, 60000) == NULL && told_no_memory == 3);
  CHECK(told_bad == 0);
  free(block + 8);
  CHECK(told_bad == 1);
  free(block);
  free(block);
  CHECK(told_bad == 2 && busy(vm) == 0);
  CHECK(vmclose(vm) == 0);
  free(it);
}

static void *volatile allocated;

static void allocate(Vmalloc_t *vm)
{
  (void)vm;
  if (allocated == NULL) allocated = malloc(500);
}

/* What memoryf allocates comes from the heap. */
static void a_discipline_may_allocate(void)
{
  struct recorder *it = recorder(64, REFUSES);
  Vmalloc_t *vm = vmopen(&it->disc, Vmbest, 0);
  void *block;
  Vmregion = vm;
  it->on_memory = allocate;
  block = malloc(30000);
  CHECK(vmregion(block) == vm && allocated != NULL && vmregion(allocated) == Vmheap);
  free(block);
  free(allocated);
  allocated = NULL;
  /* The same when the program itself has called the region. */
  block = vmalloc(vm, 100000);
  CHECK(block != NULL && allocated != NULL);
  CHECK(vmfree(vm, block) == 0);
  it->on_memory = NULL;
  free(allocated);
  CHECK(vmclose(vm) == 0);
  free(it);
}

static void *allocate_or_clear(size_t size, unsigned state) { return state % 3 == 0 ? calloc(1, size) : malloc(size); }

static void *work(void *seed)
{
  static const struct functions mallocs = {allocate_or_clear, realloc, free, 3000};
  use_blocks(&mallocs, (size_t)seed, ROUNDS);
  return NULL;
}

/* Threads use the region at once, though it was not opened with VM_SHARE, and forks go on meanwhile. */
static void threads_share_the_region(Vmethod_t *method)
{
  pthread_t threads[THREADS];
  int at, status;
  Vmalloc_t *vm = vmopen(Vmdcsystem, method, 0);
  /* The threads run before the region is there, so that blocks of both are freed. */
  for (at = 0; at < THREADS; at++) CHECK(pthread_create(&threads[at], NULL, work, (void *)(size_t)(at + 1)) == 0);
  Vmregion = vm;
  for (at = 0; at < FORKS; at++) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      void *block = malloc(1000);
      free(block);
      _exit(block != NULL ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
  }
  for (at = 0; at < THREADS; at++) CHECK(pthread_join(threads[at], NULL) == 0);
  Vmregion = Vmheap;
  CHECK(vmset(vm, 0, 0) & VM_SHARE);
  CHECK(vmdbcheck(vm) == 0);
  CHECK(vmclose(vm) == 0);
}

static void *allocate_until_seen(void *vm)
{
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
    void *block = malloc(3000);
    int is_seen = vmregion(block) == vm;
    free(block);
    if (is_seen) return vm;
  }
  return NULL;
}

/* "Storing into Vmregion is seen at a thread's next miss", also by threads that run already. */
static void running_threads_see_the_store(void)
{
  pthread_t thread;
  void *seen;
  Vmalloc_t *vm = vmopen(Vmdcsystem, Vmbest, VM_SHARE);
  CHECK(pthread_create(&thread, NULL, allocate_until_seen, vm) == 0);
  use_region(vm);
  CHECK(pthread_join(thread, &seen) == 0 && seen == vm);
  Vmregion = Vmheap;
  CHECK(vmclose(vm) == 0);
}

/* With VM_TRACE on Vmheap, calls of malloc are traced. */
static void calls_of_the_heap_are_traced(void)
{
  int fds[2];
  static char lines[1 << 16], expected[200];
  ssize_t length;
  void *block;
  CHECK(pipe(fds) == 0 && vmtrace(fds[1]) == -1);
  CHECK(vmset(Vmheap, VM_TRACE, 1) >= 0);
  block = malloc(20001);
  block = realloc(block, 30001);
  free(block);
  CHECK(vmset(Vmheap, VM_TRACE, 0) & VM_TRACE);
  CHECK(vmtrace(-1) == fds[1]);
  length = read(fds[0], lines, sizeof lines - 1);
  CHECK(length > 0);
  snprintf(expected, sizeof expected, ":20001:0:%lx:b:\n", (unsigned long)Vmheap);
  CHECK(strstr(lines, expected) != NULL);
  snprintf(expected, sizeof expected, ":30001:0:%lx:b:\n", (unsigned long)Vmheap);
  CHECK(strstr(lines, expected) != NULL);
  CHECK(strstr(strstr(lines, expected), ":0:") != NULL);
  close(fds[0]);
  close(fds[1]);
}

/* A timed line has a further field. */
static void lines_can_have_a_time(void)
{
  int fds[2];
  char line[300], *time;
  ssize_t length;
  Vmalloc_t *vm = vmopen(Vmdcheap, Vmbest, VM_TRACE);
  CHECK(pipe(fds) == 0 && vmtrace(fds[1]) == -1 && vmtracetimed(1) == 0);
  vmfileline("a.c", 3, NULL);
  CHECK((vmalloc)(vm, 10) != NULL);
  CHECK(vmtracetimed(0) == 1 && vmtrace(-1) == fds[1]);
  length = read(fds[0], line, sizeof line - 1);
  CHECK(length > 0);
  line[length] = 0;
  time = strstr(line, ":b:file=a.c,line=3:time=");
  CHECK(time != NULL);
  {
    long long seconds;
    int digits, thread, end = 0;
    CHECK(sscanf(time, ":b:file=a.c,line=3:time=%lld.%n", &seconds, &digits) == 1 && seconds > 1600000000);
    CHECK(time[digits + 9] == ',' && sscanf(time + digits + 9, ",tid=%d:%n", &thread, &end) == 1 && end > 0);
    CHECK(thread == getpid() && time[digits + 9 + end] == '\n');
  }
  CHECK(vmclose(vm) == 0);
}

int main(void)
{
  setvbuf(stdout, NULL, _IONBF, 0);
  all_kinds_of_calls_go_to_the_region();
  calls_with_flags_stay_in_the_heap();
  blocks_inside_blocks_of_the_heap_are_told_apart();
  the_last_block_is_freed();
  a_pool_serves_one_size();
  the_discipline_is_told();
  a_discipline_may_allocate();
  running_threads_see_the_store();
  threads_share_the_region(Vmbest);
  threads_share_the_region(Vmdebug);
  threads_share_the_region(Vmprofile);
  calls_of_the_heap_are_traced();
  lines_can_have_a_time();
  puts("ok");
  return 0;
}
