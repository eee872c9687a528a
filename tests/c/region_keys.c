/* The keys of open regions: vm.regions and vm.region.<i>.*, and vmname. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>
#include "region_check.h"

static char key[64];

static const char *of(unsigned number, const char *leaf)
{
  snprintf(key, sizeof key, "vm.region.%u.%s", number, leaf);
  return key;
}

static size_t number_at(const char *name)
{
  size_t value = 0, length = sizeof value;
  CHECK(mallctl(name, &value, &length, NULL, 0) == 0);
  return value;
}

static unsigned unsigned_at(const char *name)
{
  unsigned value = 0;
  size_t length = sizeof value;
  CHECK(mallctl(name, &value, &length, NULL, 0) == 0);
  return value;
}

static const char *text_at(const char *name)
{
  const char *value = NULL;
  size_t length = sizeof value;
  CHECK(mallctl(name, &value, &length, NULL, 0) == 0);
  return value;
}

static char buffer[256];

static const char *buffer_at(const char *name)
{
  char *place = buffer;
  size_t length = sizeof place;
  CHECK(mallctl(name, &place, &length, NULL, 0) == 0);
  return buffer;
}

static int fails(const char *name)
{
  size_t value, length = sizeof value;
  return mallctl(name, &value, &length, NULL, 0);
}

static void new_epoch(void)
{
  uint64_t epoch = 1;
  CHECK(mallctl("epoch", NULL, NULL, &epoch, sizeof epoch) == 0);
}

static unsigned of_handle(Vmalloc_t *vm)
{
  unsigned value = 77;
  size_t length = sizeof value;
  CHECK(mallctl("vm.lookup", &value, &length, &vm, sizeof vm) == 0);
  return value;
}

static void a_region_tells_what_it_is(void)
{
  Vmalloc_t *one = vmopen(Vmdcsystem, Vmbest, VM_SHARE), *two = vmopen(Vmdcheap, Vmpool, 0);
  Vmstat_t st;
  char *name = (char *)"another name";
  CHECK(number_at("vm.regions") == 2 && number_at("vm.nregions") == 2);
  CHECK(of_handle(one) == 0 && of_handle(two) == 1);
  CHECK(strcmp(text_at(of(0, "method")), "best") == 0 && strcmp(text_at(of(1, "method")), "pool") == 0);
  CHECK(strcmp(text_at(of(0, "discipline")), "system") == 0 && strcmp(text_at(of(1, "discipline")), "heap") == 0);
  CHECK(unsigned_at(of(0, "flags")) == (VM_MTBEST | VM_SHARE) && number_at(of(0, "address")) == (size_t)one);
  CHECK(strcmp(buffer_at(of(0, "name")), "region_0") == 0);
  CHECK(vmname(one, "sessions of the first tenant of all") == 0);
  CHECK(strcmp(buffer_at(of(0, "name")), "sessions of the first tenant of") == 0);
  CHECK(mallctl(of(1, "name"), NULL, NULL, &name, sizeof name) == 0);
  CHECK(strcmp(buffer_at(of(1, "name")), "another name") == 0);
  CHECK(vmname(two, NULL) == 0 && strcmp(buffer_at(of(1, "name")), "region_1") == 0);
  errno = 0;
  CHECK(vmname(NULL, "x") == -1 && errno == EINVAL && vmname(Vmheap, "x") == -1);
  CHECK(fails(of(0, "file")) == ENOENT && unsigned_at(of(0, "holder")) == 0);

  CHECK(vmalloc(one, 100) != NULL && vmalloc(one, 5000) != NULL && vmalloc(two, 24) != NULL);
  new_epoch();
  CHECK(vmstat(one, &st) == 0);
  CHECK(number_at(of(0, "n_busy")) == 2 && number_at(of(0, "s_busy")) == st.s_busy);
  CHECK(number_at(of(0, "m_busy")) == st.m_busy && number_at(of(0, "n_free")) == (size_t)st.n_free);
  CHECK(number_at(of(0, "s_free")) == st.s_free && number_at(of(0, "m_free")) == st.m_free);
  CHECK(number_at(of(0, "n_seg")) == (size_t)st.n_seg && number_at(of(0, "extent")) == st.extent);
  CHECK(number_at(of(1, "n_busy")) == 1 && number_at(of(1, "s_busy")) == 24);
  CHECK(unsigned_at(of(0, "check")) == 0 && fails(of(1, "check")) == EINVAL);

  /* All numbers of a region are of one moment, until the next epoch. */
  CHECK(vmalloc(one, 100) != NULL && number_at(of(0, "n_busy")) == 2);
  new_epoch();
  CHECK(number_at(of(0, "n_busy")) == 3);

  CHECK(vmclose(one) == 0 && number_at("vm.regions") == 1 && number_at("vm.nregions") == 2);
  CHECK(fails(of(0, "extent")) == ENOENT && fails(of(0, "method")) == ENOENT && fails(of(2, "extent")) == ENOENT);
  CHECK(mallctl(of(0, "compact"), NULL, NULL, NULL, 0) == ENOENT);
  one = vmopen(Vmdcheap, Vmdebug, 0);
  CHECK(of_handle(one) == 0 && strcmp(text_at(of(0, "method")), "debug") == 0);
  CHECK(number_at(of(0, "n_busy")) == 0);
  CHECK(vmclose(one) == 0 && vmclose(two) == 0 && number_at("vm.regions") == 0);
}

static void a_region_is_checked_and_compacted(void)
{
  Vmalloc_t *vm = vmopen(Vmdcsystem, Vmbest, 0);
  char *block = (char *)vmalloc(vm, 100), *large = (char *)vmalloc(vm, 10 << 20);
  size_t before;
  unsigned checked;
  size_t length = sizeof checked;
  new_epoch();
  before = number_at(of(0, "extent"));
  CHECK(vmfree(vm, large) == 0 && mallctl(of(0, "compact"), NULL, NULL, NULL, 0) == 0);
  new_epoch();
  CHECK(before > (10 << 20) && number_at(of(0, "extent")) < (1 << 20));
  memset(block, 7, vmsize(vm, block) + 8);
  CHECK(mallctl(of(0, "check"), &checked, &length, NULL, 0) == 0 && checked > 0);
  CHECK(vmclose(vm) == 0);
}

/* A thread with descriptors of its own, as the exporter's, of which none is the file's. */
static void *without_descriptors(void *absolute)
{
  if (unshare(CLONE_FILES) != 0) return NULL;
  for (int number = 3; number < 64; number++) close(number);
  CHECK(strcmp(buffer_at(of(0, "file")), absolute) == 0);
  return NULL;
}

static void close_what_is(const char *path)
{
  struct stat file, other;
  CHECK(stat(path, &file) == 0);
  for (int number = 3; number < 64; number++)
    if (fstat(number, &other) == 0 && file.st_ino == other.st_ino && file.st_dev == other.st_dev) close(number);
}

static void a_region_in_a_file_has_its_name(void)
{
  char path[] = "/tmp/region_keys_XXXXXX";
  int fd = mkstemp(path);
  Vmalloc_t *vm = vmmopen(path, -1, 1 << 20);
  char absolute[4096];
  CHECK(fd >= 0 && vm != NULL && realpath(path, absolute) != NULL);
  CHECK(strcmp(buffer_at(of(0, "name")), path + 5) == 0);
  CHECK(strcmp(buffer_at(of(0, "file")), absolute) == 0);
  CHECK(strcmp(text_at(of(0, "discipline")), "file") == 0 && unsigned_at(of(0, "holder")) == 0);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, without_descriptors, absolute) == 0 && pthread_join(thread, NULL) == 0);
  close_what_is(absolute);
  CHECK(strcmp(buffer_at(of(0, "file")), absolute) == 0);
  CHECK(vmmcleanup(vm) != NULL && vmclose(vm) == 0);
}

static unsigned inside_calls;

static void ask_inside(Vmalloc_t *vm)
{
  unsigned number = of_handle(vm);
  /* This thread is in the region. */
  CHECK(fails(of(number, "n_busy")) == EBUSY);
  CHECK(mallctl(of(number, "compact"), NULL, NULL, NULL, 0) == EBUSY);
  inside_calls++;
}

static void open_another(Vmalloc_t *vm)
{
  Vmalloc_t *opened = vmopen(Vmdcheap, Vmlast, 0);
  CHECK(opened != NULL && vmalloc(vm, 10) == NULL && errno == EBUSY);
  CHECK(vmclose(vm) == -1 && vmclose(opened) == 0);
  inside_calls++;
}

static void a_discipline_that_asks_fails_and_one_that_opens_regions_does_not(void)
{
  struct recorder *it = recorder(0, GROWS);
  Vmalloc_t *vm = vmopen(&it->disc, Vmbest, 0);
  char *block;
  it->on_memory = ask_inside;
  block = (char *)vmalloc(vm, 100000);
  CHECK(block != NULL && inside_calls > 0);
  it->on_memory = open_another;
  inside_calls = 0;
  CHECK(vmfree(vm, block) == 0);
  /* memoryf is called by this thread, as a visitor. */
  CHECK(mallctl(of(of_handle(vm), "compact"), NULL, NULL, NULL, 0) == 0 && inside_calls > 0);
  it->on_memory = NULL;
  CHECK(vmalloc(vm, 10) != NULL && vmclose(vm) == 0);
  free(it);
}

static volatile int ends;

/* Uses a region that is its own. */
static void *owner(void *argument)
{
  Vmalloc_t *vm = (Vmalloc_t *)argument;
  unsigned long round = 0;
  void *kept[64] = {NULL};
  while (!ends) {
    void **place = &kept[round * 7 % 64];
    CHECK(vmfree(vm, *place) == 0);
    *place = vmalloc(vm, round * 31 % 2000 + 1);
    CHECK(*place != NULL && (round % 64 != 0 || vmregion(*place) == vm));
    round++;
  }
  return NULL;
}

static int see(Vmalloc_t *vm, void *segment, size_t size, Vmdisc_t *disc, void *handle)
{
  (void)vm, (void)segment, (void)disc;
  *(size_t *)handle += size;
  return 0;
}

static void regions_of_other_threads_are_looked_at(void)
{
  pthread_t threads[2];
  Vmalloc_t *regions[2];
  unsigned i, round, seen = 0;
  for (i = 0; i < 2; i++) {
    regions[i] = vmopen(Vmdcheap, Vmbest, i == 0 ? 0 : VM_SHARE);
    CHECK(regions[i] != NULL && pthread_create(&threads[i], NULL, owner, regions[i]) == 0);
  }
  for (round = 0; round < 100; round++) {
    size_t value = 0, length = sizeof value, walked = 0;
    unsigned damaged = 0;
    size_t size = sizeof damaged;
    new_epoch();
    for (i = 0; i < 2; i++) {
      if (mallctl(of(i, "n_busy"), &value, &length, NULL, 0) == 0) {
        CHECK(value <= 64);
        seen += value > 0;
      }
      if (mallctl(of(i, "check"), &damaged, &size, NULL, 0) == 0) CHECK(damaged == 0);
    }
    CHECK(vmwalk(NULL, see, &walked) == 0 && walked > 0);
    if (round % 10 == 0) mallctl(of(round / 10 % 2, "compact"), NULL, NULL, NULL, 0);
    CHECK(vmregion(&round) == NULL);
  }
  ends = 1;
  for (i = 0; i < 2; i++) {
    CHECK(pthread_join(threads[i], NULL) == 0 && vmdbcheck(regions[i]) == 0 && vmclose(regions[i]) == 0);
  }
  CHECK(seen > 20);
}

int main(void)
{
  CHECK(number_at("vm.regions") == 0 && fails(of(0, "extent")) == ENOENT);
  a_region_tells_what_it_is();
  a_region_is_checked_and_compacted();
  a_region_in_a_file_has_its_name();
  a_discipline_that_asks_fails_and_one_that_opens_regions_does_not();
  regions_of_other_threads_are_looked_at();
  puts("ok");
  return 0;
}
