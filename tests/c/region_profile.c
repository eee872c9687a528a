/* Vmprofile: the summary, byte for byte as the library of 2011 writes it, but with right sums. */
#define VMFL
#include "region_check.h"
#include <sys/mman.h>
#include <unistd.h>

static int fds[2];

static void expect(const char *format, Vmalloc_t *one, Vmalloc_t *two)
{
  char expected[4096], found[4096] = "";
  const char *from;
  char *to = expected;
  ssize_t length = read(fds[0], found, sizeof found - 1);
  for (from = format; *from != 0; from++) {
    if (*from == 'V') to += sprintf(to, "%lx", (unsigned long)one);
    else if (*from == 'W') to += sprintf(to, "%lx", (unsigned long)two);
    else *to++ = *from;
  }
  *to = 0;
  CHECK(length > 0);
  found[length] = 0;
  if (strcmp(expected, found) != 0) {
    fprintf(stderr, "expected:\n%sfound:\n%s", expected, found);
    _Exit(1);
  }
}

/* What was counted stays with the segments that vmclose leaves, for the region that is opened again. A new region
 * in the same memory begins with nothing. */
static void counts_belong_to_one_region(void)
{
  static const char format[] = "ALLOCATION USAGE SUMMARY:n_alloc=%d:n_free=0:s_alloc=%d:s_free=0:\n"
                               "region=V:n_alloc=%d:n_free=0:s_alloc=%d:s_free=0:max_busy=%d:extent=%lu:\n"
                               "file=<>:n_alloc=%d:n_free=0:s_alloc=%d:s_free=0:\n"
                               "\tline=0:region=V:n_alloc=%d:n_free=0:s_alloc=%d:s_free=0:\n";
  struct recorder *it = recorder(64, GROWS);
  char text[2048];
  void *data = NULL;
  int round, blocks, bytes;
  for (round = 0; round < 3; round++) {
    Vmalloc_t *vm;
    Vmstat_t st;
    /* Opened, opened again, and another one opened there. */
    it->stored = round == 1 ? data : NULL;
    it->returns[VM_OPEN] = round == 1;
    it->returns[VM_CLOSE] = round < 2;
    if (round == 2) it->used = 0;
    vm = vmopen(&it->disc, Vmprofile, 0);
    CHECK(vm != NULL && (data == NULL || vmdata(vm) == data) && (vmalloc)(vm, 100) != NULL);
    data = vmdata(vm);
    blocks = round == 1 ? 2 : 1;
    bytes = blocks * 100;
    CHECK(vmstat(vm, &st) == 0 && st.n_busy == blocks && vmprofile(NULL, fds[1]) == 0);
    sprintf(text, format, blocks, bytes, blocks, bytes, bytes, (unsigned long)st.extent, blocks, bytes, blocks, bytes);
    expect(text, vm, NULL);
    CHECK(vmclose(vm) == 0);
  }
  free(it);
}

/* The names of a plug-in go when it is closed. What it has freed is counted still. */
static void names_are_kept(void)
{
  char *names = (char *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Vmalloc_t *vm = vmopen(Vmdcheap, Vmprofile, 0);
  Vmstat_t st;
  char text[2048];
  CHECK(names != MAP_FAILED && vm != NULL);
  strcpy(names, "plug.c");
  vmfileline(names, 5, "");
  CHECK((vmfree)(vm, (vmalloc)(vm, 100)) == 0 && munmap(names, 4096) == 0);
  CHECK(vmstat(vm, &st) == 0 && vmprofile(vm, fds[1]) == 0);
  sprintf(text,
          "ALLOCATION USAGE SUMMARY:n_alloc=1:n_free=1:s_alloc=100:s_free=100:\n"
          "region=V:n_alloc=1:n_free=1:s_alloc=100:s_free=100:max_busy=100:extent=%lu:\n"
          "file=plug.c:n_alloc=1:n_free=1:s_alloc=100:s_free=100:\n"
          "\tline=5:region=V:n_alloc=1:n_free=1:s_alloc=100:s_free=100:\n",
          (unsigned long)st.extent);
  expect(text, vm, NULL);
  CHECK(vmclose(vm) == 0);
}

int main(void)
{
  struct recorder *it = recorder(64, GROWS);
  Vmalloc_t *vm, *best;
  void *block;
  Vmstat_t st;
  char text[2048];
  CHECK(pipe(fds) == 0);
  CHECK(vmprofile(NULL, -1) == -1 && vmprofile(NULL, fds[1]) == 0);
  expect("ALLOCATION USAGE SUMMARY:n_alloc=0:n_free=0:s_alloc=0:s_free=0:\n", NULL, NULL);
  names_are_kept();
  vm = vmopen(&it->disc, Vmprofile, 0);
#line 48 "p2.c"
  block = vmalloc(vm, 100);
  block = vmresize(vm, block, 12, 0);
  CHECK((vmalloc)(vm, 7) != NULL && vmfree(vm, block) == 0 && vmfree(vm, block) == -1);
  CHECK(vmstat(vm, &st) == 0 && st.n_busy == 1 && st.s_busy == 7 && (st.mode & VM_MTPROFILE) != 0);
  CHECK(vmprofile(vm, fds[1]) == 0);
  sprintf(text,
          "ALLOCATION USAGE SUMMARY:n_alloc=3:n_free=2:s_alloc=119:s_free=112:\n"
          "region=V:n_alloc=3:n_free=2:s_alloc=119:s_free=112:max_busy=100:extent=%lu:\n"
          "file=<>:n_alloc=1:n_free=0:s_alloc=7:s_free=0:\n"
          "\tline=0:region=V:n_alloc=1:n_free=0:s_alloc=7:s_free=0:\n"
          "file=p2.c:n_alloc=2:n_free=2:s_alloc=112:s_free=112:\n"
          "\tline=48:region=V:n_alloc=1:n_free=1:s_alloc=100:s_free=100:\n"
          "\tline=49:region=V:n_alloc=1:n_free=1:s_alloc=12:s_free=12:\n",
          (unsigned long)st.extent);
  expect(text, vm, NULL);
  CHECK(vmprofile(NULL, fds[1]) == 0);
  expect(text, vm, NULL);
  best = vmopen(Vmdcheap, Vmbest, 0);
  CHECK(vmprofile(best, fds[1]) == -1 && errno == EINVAL && vmclose(best) == 0);
  CHECK(vmregion((vmalloc)(vm, 1)) == vm && vmdbcheck(vm) == 0 && is_aligned((vmalign)(vm, 5, 96), 96));
  /* "vmclose drops a region's records." */
  CHECK(vmclose(vm) == 0 && vmprofile(NULL, fds[1]) == 0);
  expect("ALLOCATION USAGE SUMMARY:n_alloc=0:n_free=0:s_alloc=0:s_free=0:\n", NULL, NULL);
  free(it);
  counts_belong_to_one_region();
  puts("ok");
  return 0;
}
