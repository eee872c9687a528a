/* The trace: each line byte for byte, as the library of 2011 writes it. */
#define VMFL
#include "region_check.h"
#include <fcntl.h>
#include <unistd.h>

static int fds[2];

/* What was traced since the last call, with the addresses of two blocks and of the region by name. */
static void expect_trace(const char *format, Vmalloc_t *vm, void *one, void *two)
{
  char expected[4096], found[4096] = "";
  const char *from;
  char *to = expected;
  ssize_t length = read(fds[0], found, sizeof found - 1);
  for (from = format; *from != 0; from++) {
    if (*from == 'V') to += sprintf(to, "%lx", (unsigned long)vm);
    else if (*from == 'A') to += sprintf(to, "%lx", (unsigned long)one);
    else if (*from == 'B') to += sprintf(to, "%lx", (unsigned long)two);
    else *to++ = *from;
  }
  *to = 0;
  if (length < 0) length = 0;
  found[length] = 0;
  if (strcmp(expected, found) != 0) {
    fprintf(stderr, "expected:\n%sfound:\n%s", expected, found);
    _Exit(1);
  }
}

static void each_method_has_its_letter(void)
{
  Vmethod_t *methods[3];
  static const char *const lines[3] = {
    "0:A:112:0:V:b:\n0:0:0:0:V:b:\nA:0:120:0:V:b:\n",
    "0:A:112:0:V:l:\n0:0:0:0:V:l:\nA:0:112:0:V:l:\n",
    "0:A:112:0:V:p:\n0:0:0:0:V:p:\nA:0:112:0:V:p:\n",
  };
  int m;
  methods[0] = Vmbest;
  methods[1] = Vmlast;
  methods[2] = Vmpool;
  for (m = 0; m < 3; m++) {
    Vmalloc_t *vm = vmopen(Vmdcheap, methods[m], VM_TRACE);
    void *block = (vmalloc)(vm, 112);
    CHECK(vmcompact(vm) == 0 && (vmfree)(vm, block) == 0);
    expect_trace(lines[m], vm, block, NULL);
    CHECK(vmclose(vm) == 0);
  }
}

static void successful_calls_are_traced(void)
{
  Vmalloc_t *vm = vmopen(Vmdcheap, Vmbest, VM_TRACE);
  void *block = (vmalloc)(vm, 1000), *aligned, *moved;
  expect_trace("0:A:1000:0:V:b:\n", vm, block, NULL);
  CHECK((vmresize)(vm, block, 300, 0) == block);
  expect_trace("A:A:300:0:V:b:\n", vm, block, NULL);
  aligned = (vmalign)(vm, 10, 64);
  expect_trace("0:A:10:64:V:b:\n", vm, aligned, NULL);
  moved = (vmresize)(vm, aligned, 5000, VM_RSMOVE);
  CHECK(moved != aligned);
  expect_trace("A:B:5000:0:V:b:\n", vm, aligned, moved);
  CHECK((vmresize)(vm, NULL, 7, VM_RSZERO) != NULL && read(fds[0], &fds[1], 0) == 0);
  CHECK((vmresize)(vm, moved, 0, 0) == NULL);
  {
    char rest[300];
    CHECK(read(fds[0], rest, sizeof rest) > 0);
  }
  CHECK((vmfree)(vm, &block) == -1 && (vmalloc)(vm, opaque(SIZE_MAX)) == NULL && (vmfree)(vm, NULL) == 0);
  CHECK(vmset(vm, VM_TRACE, 0) == (VM_MTBEST | VM_TRACE) && (vmalloc)(vm, 10) != NULL);
  expect_trace("", vm, NULL, NULL);
  CHECK(vmclose(vm) == 0);
}

static void positions_stand_at_the_end(void)
{
  Vmalloc_t *vm = vmopen(Vmdcheap, Vmbest, VM_TRACE);
  void *block;
  char expected[200];
#line 77 "here.c"
  block = vmalloc(vm, 100);
  expect_trace("0:A:100:0:V:b:file=here.c,line=77,func=positions_stand_at_the_end:\n", vm, block, NULL);
  vmfileline("there.c", 5, NULL);
  CHECK((vmfree)(vm, block) == 0);
  sprintf(expected, "A:0:%d:0:V:b:file=there.c,line=5:\n", 104);
  expect_trace(expected, vm, block, NULL);
  vmfileline(NULL, 5, "function");
  block = (vmalloc)(vm, 8);
  expect_trace("0:A:8:0:V:b:func=function:\n", vm, block, NULL);
  vmfileline("", 0, "");
  block = (vmalloc)(vm, 8);
  expect_trace("0:A:8:0:V:b:\n", vm, block, NULL);
  /* A call that writes nothing takes the position too. */
  vmfileline("there.c", 5, NULL);
  CHECK((vmfree)(vm, NULL) == 0);
  block = (vmalloc)(vm, 8);
  expect_trace("0:A:8:0:V:b:\n", vm, block, NULL);
  CHECK(vmclose(vm) == 0);
}

/* "vmtrbusy outputs a trace of all currently busy blocks in region vm." */
static void vmtrbusy_traces_blocks_in_use(void)
{
  Vmalloc_t *vm = vmopen(Vmdcheap, Vmbest, 0), *last = vmopen(Vmdcheap, Vmlast, 0);
  void *one = (vmalloc)(vm, 40), *gone = (vmalloc)(vm, 100), *two = (vmalloc)(vm, 56);
  CHECK((vmfree)(vm, gone) == 0 && vmtrbusy(vm) == 0);
  expect_trace("0:A:40:0:V:u:\n0:B:56:0:V:u:\n", vm, one, two);
  CHECK(vmtrbusy(last) == -1 && vmtrbusy(NULL) == -1);
  CHECK(vmclose(vm) == 0 && vmclose(last) == 0);
}

/* A line is one write of at most 1024 bytes, whatever the names. */
static void long_names_lose_their_beginning(void)
{
  static char name[3000], line[2048];
  Vmalloc_t *vm = vmopen(Vmdcheap, Vmbest, VM_TRACE);
  ssize_t length;
  memset(name, 'x', sizeof name - 2);
  name[sizeof name - 2] = 'y';
  vmfileline(name, 1, name);
  CHECK((vmalloc)(vm, 8) != NULL);
  length = read(fds[0], line, sizeof line - 1);
  CHECK(length > 800 && length <= 1024 && strcmp(line + length - 4, "xy:\n") == 0);
  CHECK(strstr(line, "xy,line=1,func=xx") != NULL);
  CHECK(vmclose(vm) == 0);
}

int main(void)
{
  CHECK(pipe(fds) == 0 && fcntl(fds[0], F_SETFL, O_NONBLOCK) == 0);
  CHECK(vmtrace(fds[1]) == -1 && vmtrace(fds[1]) == fds[1]);
  each_method_has_its_letter();
  successful_calls_are_traced();
  positions_stand_at_the_end();
  vmtrbusy_traces_blocks_in_use();
  long_names_lose_their_beginning();
  CHECK(vmtrace(-5) == fds[1] && vmtrace(-1) == -1 && vmtrbusy(Vmheap) == -1);
  puts("ok");
  return 0;
}
