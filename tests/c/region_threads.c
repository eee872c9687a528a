/* Regions that threads share, and forks meanwhile. */
#include "region_check.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8, ROUNDS = 100000, FORKS = 20 };
static Vmalloc_t *shared;
static int stop;

static void *shared_alloc(size_t size, unsigned state)
{
  (void)state;
  return vmalloc(shared, size);
}

static void *shared_resize(void *block, size_t size) { return vmresize(shared, block, size, VM_RSCOPY); }

static void shared_free(void *block) { CHECK(vmfree(shared, block) == 0); }

/* "This region may be accessed concurrently by multiple threads or processes." */
static void *use(void *seed)
{
  static const struct functions of_region = {shared_alloc, shared_resize, shared_free, 300};
  use_blocks(&of_region, (size_t)seed, ROUNDS);
  return NULL;
}

static void threads_share_a_region(Vmdisc_t *disc)
{
  pthread_t threads[THREADS];
  Vmstat_t st;
  size_t at;
  shared = vmopen(disc, Vmbest, VM_SHARE);
  for (at = 0; at < THREADS; at++) CHECK(pthread_create(&threads[at], NULL, use, (void *)(at + 1)) == 0);
  for (at = 0; at < THREADS; at++) CHECK(pthread_join(threads[at], NULL) == 0);
  CHECK(vmstat(shared, &st) == 0 && st.n_busy == 0 && st.s_busy == 0 && vmbusy(shared) == 0);
  CHECK(vmclose(shared) == 0);
}

/* Regions come and go in many threads. */
static void *open_and_close(void *unused)
{
  int round;
  for (round = 0; round < 2000; round++) {
    Vmalloc_t *one = vmopen(Vmdcheap, Vmlast, 0), *two = vmopen(Vmdcheap, Vmbest, VM_SHARE);
    CHECK(vmalloc(one, 100) != NULL && vmalloc(two, 100) != NULL);
    CHECK(vmclose(one) == 0 && vmclose(two) == 0);
  }
  return unused;
}

static void threads_open_and_close_regions(void)
{
  pthread_t threads[THREADS];
  size_t at;
  for (at = 0; at < THREADS; at++) CHECK(pthread_create(&threads[at], NULL, open_and_close, NULL) == 0);
  for (at = 0; at < THREADS; at++) CHECK(pthread_join(threads[at], NULL) == 0);
  CHECK(Vmheap->next == NULL);
}

static void *keep_busy(void *unused)
{
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
    void *block = vmalloc(shared, 100);
    Vmalloc_t *vm = vmopen(Vmdcheap, Vmlast, 0);
    CHECK(block != NULL && vmfree(shared, block) == 0 && vmclose(vm) == 0);
  }
  return unused;
}

/* The child of a fork can use the regions, whatever other threads did meanwhile. */
static void a_child_can_use_the_regions(void)
{
  pthread_t threads[THREADS];
  size_t at;
  int status;
  shared = vmopen(Vmdcsystem, Vmbest, VM_SHARE);
  for (at = 0; at < THREADS; at++) CHECK(pthread_create(&threads[at], NULL, keep_busy, NULL) == 0);
  for (at = 0; at < FORKS; at++) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      void *block = vmalloc(shared, 1000);
      Vmalloc_t *vm = vmopen(Vmdcheap, Vmbest, VM_SHARE);
      _exit(vmfree(shared, block) + vmclose(vm) == 0 && vmclose(shared) == 0 ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
  }
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  for (at = 0; at < THREADS; at++) CHECK(pthread_join(threads[at], NULL) == 0);
  CHECK(vmclose(shared) == 0);
}

/* A call from inside a call may fork: the region stays locked until that call ends. */
static void fork_inside(Vmalloc_t *vm)
{
  int status;
  pid_t child;
  if (vm->data == NULL) return;
  child = fork();
  if (child == 0) _exit(vmbusy(vm) == 1 && vmalloc(vm, 1) == NULL ? 0 : 1);
  CHECK(waitpid(child, &status, 0) == child && status == 0 && vmbusy(vm) == 1);
}

static void a_discipline_may_fork(void)
{
  struct recorder *it = recorder(64, REFUSES);
  Vmalloc_t *vm = vmopen(&it->disc, Vmbest, VM_SHARE);
  it->on_memory = fork_inside;
  CHECK(vmalloc(vm, 5000) != NULL && vmbusy(vm) == 0);
  it->on_memory = NULL;
  CHECK(vmclose(vm) == 0);
  free(it);
}

/* "VM_SHARE: ... may be accessed concurrently by multiple threads or processes." Memory that processes share. */
struct common {
  Vmdisc_t disc;
  int is_called, is_asking;
  size_t used;
  char bytes[65536];
};

static void *provide(Vmalloc_t *vm, void *addr, size_t csz, size_t nsz, Vmdisc_t *disc)
{
  struct common *it = (struct common *)disc;
  char *end = it->bytes + it->used;
  if (csz != 0 || nsz > sizeof it->bytes - it->used) return NULL;
  it->used += nsz;
  (void)addr;
  if (vm->data == NULL) return end;
  __atomic_store_n(&it->is_called, 1, __ATOMIC_RELEASE);
  /* The other process calls the region meanwhile, and waits. */
  while (!__atomic_load_n(&it->is_asking, __ATOMIC_ACQUIRE)) usleep(1000);
  usleep(200000);
  return end;
}

static void processes_share_a_region(void)
{
  struct common *it =
    (struct common *)mmap(NULL, sizeof *it, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Vmalloc_t *vm;
  pid_t child;
  int status;
  CHECK(it != MAP_FAILED);
  it->disc.memoryf = provide;
  it->disc.round = 64;
  vm = vmopen(&it->disc, Vmbest, VM_SHARE);
  child = fork();
  if (child == 0) {
    while (!__atomic_load_n(&it->is_called, __ATOMIC_ACQUIRE)) usleep(1000);
    __atomic_store_n(&it->is_asking, 1, __ATOMIC_RELEASE);
    _exit(vmalloc(vm, 10) != NULL ? 0 : 1);
  }
  CHECK(vmalloc(vm, 5000) != NULL);
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(vmclose(vm) == 0 && munmap(it, sizeof *it) == 0);
}

/* In the child of a fork, malloc works over a region of the program's own discipline, though a thread is in it. */
static int is_inside, may_leave;

static void stay_inside(Vmalloc_t *vm)
{
  if (vm->data == NULL || is_inside) return;
  __atomic_store_n(&is_inside, 1, __ATOMIC_RELEASE);
  while (!__atomic_load_n(&may_leave, __ATOMIC_ACQUIRE)) usleep(1000);
}

static void *allocate_inside(void *unused)
{
  (void)unused;
  return malloc(5000);
}

/* The fork waits for the thread inside, which leaves a little later. */
static void *let_it_leave(void *unused)
{
  usleep(200000);
  __atomic_store_n(&may_leave, 1, __ATOMIC_RELEASE);
  return unused;
}

static void a_child_has_malloc_over_a_discipline(void)
{
  struct recorder *it = recorder(64, REFUSES);
  Vmalloc_t *vm = vmopen(&it->disc, Vmbest, 0);
  pthread_t inside, other;
  void *block;
  pid_t child;
  int status;
  it->on_memory = stay_inside;
  Vmregion = vm;
  CHECK(pthread_create(&inside, NULL, allocate_inside, NULL) == 0);
  while (!__atomic_load_n(&is_inside, __ATOMIC_ACQUIRE)) usleep(1000);
  CHECK(pthread_create(&other, NULL, let_it_leave, NULL) == 0);
  child = fork();
  if (child == 0) {
    alarm(30);
    _exit(malloc(100) != NULL ? 0 : 1);
  }
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(pthread_join(inside, &block) == 0 && pthread_join(other, NULL) == 0 && vmregion(block) == vm);
  Vmregion = Vmheap;
  CHECK(vmclose(vm) == 0);
  free(it);
}

/* Each thread has a position of its own. */
static void *take_no_position(void *vm)
{
  CHECK((vmalloc)((Vmalloc_t *)vm, 10) != NULL);
  return NULL;
}

static void positions_belong_to_threads(void)
{
  int fds[2];
  char line[200];
  ssize_t length;
  pthread_t thread;
  Vmalloc_t *vm = vmopen(Vmdcheap, Vmbest, VM_SHARE | VM_TRACE);
  CHECK(pipe(fds) == 0 && vmtrace(fds[1]) == -1);
  vmfileline("mine.c", 9, NULL);
  CHECK(pthread_create(&thread, NULL, take_no_position, vm) == 0 && pthread_join(thread, NULL) == 0);
  length = read(fds[0], line, sizeof line - 1);
  CHECK(length > 0 && memcmp(line + length - 3, "b:\n", 3) == 0);
  CHECK((vmalloc)(vm, 10) != NULL && (length = read(fds[0], line, sizeof line - 1)) > 0);
  line[length] = 0;
  CHECK(strstr(line, ":b:file=mine.c,line=9:\n") != NULL);
  CHECK(vmtrace(-1) == fds[1] && vmclose(vm) == 0);
}

int main(void)
{
  threads_share_a_region(Vmdcheap);
  threads_share_a_region(Vmdcsystem);
  threads_open_and_close_regions();
  a_child_can_use_the_regions();
  a_discipline_may_fork();
  processes_share_a_region();
  a_child_has_malloc_over_a_discipline();
  positions_belong_to_threads();
  puts("ok");
  return 0;
}
