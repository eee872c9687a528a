/* Vmdebug: what it finds, with the text of each line. */
#define VMFL
#include "region_check.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int fds[2];

/* Takes the fields with the callers out of a text. */
static void remove_callers(char *text, const char *what)
{
  char *field;
  while ((field = strstr(text, what)) != NULL) {
    char *end = strchr(field + strlen(what), ':');
    CHECK(end != NULL);
    memmove(field, end + 1, strlen(end + 1) + 1);
  }
}

/*
 * What was written since the last call, without callers, which have a test of their own. V stands for the
 * region, A and B for blocks.
 */
static void expect(const char *format, Vmalloc_t *vm, void *one, void *two)
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
  remove_callers(found, "allocated from=");
  remove_callers(found, "detected from=");
  if (strcmp(expected, found) != 0) {
    fprintf(stderr, "expected:\n%sfound:\n%s", expected, found);
    _Exit(1);
  }
}

/* "Each message is a line of self-explanatory fields separated by colons." */
static void each_mistake_has_its_line(void)
{
  Vmalloc_t *vm = vmopen(Vmdcheap, Vmdebug, 0), *other = vmopen(Vmdcheap, Vmbest, 0);
  char *block = (char *)(vmalloc)(vm, 40), *foreign = (char *)(vmalloc)(other, 40);
  CHECK((vmalloc)(vm, opaque(SIZE_MAX)) == NULL && errno == ENOMEM);
  expect("alloc error:region=V:can't get memory:\n", vm, NULL, NULL);
  CHECK((vmresize)(vm, block, opaque(SIZE_MAX), VM_RSMOVE) == NULL);
  expect("resize error:region=V:can't get memory:\n", vm, NULL, NULL);
  CHECK((vmfree)(vm, (void *)1) == -1);
  expect("free error:region=V:block=1:unallocated block:\n", vm, NULL, NULL);
  CHECK((vmfree)(vm, foreign) == -1 && (vmfree)(vm, block + 16) == -1);
  expect("free error:region=V:block=A:unallocated block:\nfree error:region=V:block=B:unallocated block:\n", vm,
         foreign, block + 16);
  CHECK((vmresize)(vm, (void *)3, 10, VM_RSMOVE) == NULL);
  expect("resize error:region=V:block=3:unallocated block:\n", vm, NULL, NULL);
  CHECK((vmfree)(vm, block) == 0 && (vmfree)(vm, block) == -1);
  expect("free error:region=V:block=A:already freed:\n", vm, block, NULL);
  CHECK((vmresize)(vm, block, 10, VM_RSMOVE) == NULL);
  expect("resize error:region=V:block=A:already freed:\n", vm, block, NULL);
  CHECK(vmclose(vm) == 0 && vmclose(other) == 0);
}

/* The names of a plug-in go when it is closed. What it has freed is checked still. */
static void names_are_kept(void)
{
  char *names = (char *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Vmalloc_t *vm = vmopen(Vmdcheap, Vmdebug, 0);
  char *block;
  CHECK(names != MAP_FAILED && vm != NULL);
  strcpy(names, "plug.c");
  strcpy(names + 100, "work");
  vmfileline(names, 5, names + 100);
  block = (char *)(vmalloc)(vm, 100);
  CHECK((vmfree)(vm, block) == 0 && munmap(names, 4096) == 0);
  block[3] = 1;
  CHECK(vmdbcheck(vm) == 1);
  expect("corrupted data:region=V:block=A:bad byte at=3:already freed:allocated at=plug.c,5:\n", vm, block, NULL);
  CHECK(vmclose(vm) == 0);
}

/* "If Vmdebug, this also checks for block overwriting errors." Each block is reported once, and counted. */
static void vmdbcheck_finds_overwritten_blocks(void)
{
  Vmalloc_t *vm = vmopen(Vmdcsystem, Vmdebug, 0);
  char *block = (char *)(vmalloc)(vm, 29), *second;
  CHECK(vmdbcheck(vm) == 0);
  block[29] = 0;
  CHECK(vmdbcheck(vm) == 1);
  expect("corrupted data:region=V:block=A:bad byte at=29:\n", vm, block, NULL);
  CHECK(vmdbcheck(vm) == 1);
  expect("", vm, NULL, NULL);
#line 32 "p2.c"
  second = (char *)vmalloc(vm, 10);
  second[-3] = 0;
  CHECK(vmdbcheck(vm) == 2);
  expect("corrupted data:region=V:block=A:bad byte at=-3:allocated at=p2.c,32:\n", vm, second, NULL);
  CHECK((vmfree)(vm, block) == 0 && (vmfree)(vm, second) == 0 && vmdbcheck(vm) == 0);
  block[2] = 1;
  CHECK(vmdbcheck(vm) == 1);
  expect("corrupted data:region=V:block=A:bad byte at=2:already freed:\n", vm, block, NULL);
  CHECK(vmclose(vm) == 0);
}

/* A broken word between blocks is found by whichever call checks. */
static void vm_dbcheck_checks_other_methods(Vmethod_t *method)
{
  int status, errors[2];
  pid_t child;
  char line[300];
  CHECK(pipe(errors) == 0 && (child = fork()) >= 0);
  if (child == 0) {
    Vmalloc_t *vm = vmopen(Vmdcheap, method, VM_DBCHECK);
    char *block = (char *)(vmalloc)(vm, 40), *other = (char *)(vmalloc)(vm, 700), *last = (char *)(vmalloc)(vm, 3000);
    dup2(errors[1], 2);
    memset(block + 40, 1, 32);
    /* Alone, this call does not come near the word. */
    last = (char *)(vmresize)(vm, last, 2999, 0);
    _exit(other != NULL && last != NULL ? 0 : 1);
  }
  CHECK(waitpid(child, &status, 0) == child && status == 0 && close(errors[1]) == 0);
  CHECK(read(errors[0], line, sizeof line) > 0 && strncmp(line, "<lumalloc>: region ", 19) == 0);
  close(errors[0]);
}

static void *resized;

static void free_the_block(Vmalloc_t *vm, int type, void *obj)
{
  (void)obj;
  if (type == VM_NOMEM) CHECK((vmfree)(vm, resized) == 0);
}

static void a_block_that_is_freed_while_it_is_resized_has_its_line(void)
{
  struct recorder *it = recorder(64, REFUSES);
  Vmalloc_t *vm = vmopen(&it->disc, Vmdebug, 0);
  resized = (vmalloc)(vm, 100);
  it->left = 0;
  it->more = 100000;
  it->returns[VM_NOMEM] = 1;
  it->on_event = free_the_block;
  CHECK((vmresize)(vm, resized, 9000, VM_RSCOPY) == NULL && errno == EINVAL);
  expect("resize error:region=V:block=A:already freed:\n", vm, resized, NULL);
  CHECK(vmdbcheck(vm) == 0 && vmcompact(vm) == 0 && vmclose(vm) == 0);
  free(it);
}

static void other_methods(void)
{
  Vmalloc_t *best = vmopen(Vmdcheap, Vmbest, VM_DBCHECK), *last = vmopen(Vmdcheap, Vmlast, 0);
  Vmalloc_t *pool = vmopen(Vmdcheap, Vmpool, 0);
  void *block = (vmalloc)(best, 10);
  CHECK(vmdbcheck(best) == 0 && vmdbcheck(last) == -1 && vmdbcheck(pool) == -1 && vmdbcheck(NULL) == -1);
  CHECK(vmdbcheck(Vmheap) == 0 && (vmfree)(best, block) == 0);
  CHECK(vmclose(best) == 0 && vmclose(last) == 0 && vmclose(pool) == 0);
}

/* The call that found the mistake, if it was compiled with -DVMFL. */
static void positions_of_the_call(void)
{
  Vmalloc_t *vm = vmopen(Vmdcheap, Vmdebug, 0);
#line 34 "p2.c"
  CHECK(vmfree(vm, (void *)1) == -1);
  expect("free error:region=V:block=1:unallocated block:detected at=p2.c,34,positions_of_the_call:\n", vm, NULL, NULL);
  vmfileline("p3.c", 7, NULL);
  CHECK((vmfree)(vm, (void *)1) == -1);
  expect("free error:region=V:block=1:unallocated block:detected at=p3.c,7,0:\n", vm, NULL, NULL);
  CHECK(vmclose(vm) == 0);
}

/* "If flag VM_DBCHECK is on, vmdbcheck is called at each invocation of vmalloc, vmfree, or vmresize." */
static void vm_dbcheck_checks_at_each_call(void)
{
  int call;
  for (call = 0; call < 3; call++) {
    Vmalloc_t *vm = vmopen(Vmdcheap, Vmdebug, VM_DBCHECK);
    char *block = (char *)(vmalloc)(vm, 8), *other = (char *)(vmalloc)(vm, 8);
    block[8] = 1;
    if (call == 0) CHECK((vmalloc)(vm, 1) != NULL);
    if (call == 1) CHECK((vmfree)(vm, other) == 0);
    if (call == 2) CHECK((vmresize)(vm, other, 4, VM_RSMOVE) != NULL);
    expect("corrupted data:region=V:block=A:bad byte at=8:\n", vm, block, NULL);
    CHECK(vmclose(vm) == 0);
  }
}

/* "if flag VM_DBABORT is on, the program is terminated by calling abort(2)" */
static void vm_dbabort_ends_the_program(void)
{
  int status;
  pid_t child = fork();
  if (child == 0) {
    Vmalloc_t *vm = vmopen(Vmdcheap, Vmdebug, VM_DBABORT);
    vmdebug(fds[1]);
    (vmfree)(vm, (void *)1);
    _exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
  {
    char line[200];
    CHECK(read(fds[0], line, sizeof line) > 20);
  }
}

/* "vmdbwatch causes address addr to be watched, and reported whenever met in vmalloc, vmresize or vmfree."
 * "watches will be removed in a first-in-first-out fashion. If addr is NULL, all current watches are
 * canceled. vmdbwatch returns the watch bumped out". */
static void watches(void)
{
  Vmalloc_t *vm = vmopen(Vmdcheap, Vmdebug, 0);
  char *block = (char *)(vmalloc)(vm, 40), places[40];
  int at;
  CHECK(vmdbwatch(block) == NULL && vmdbwatch(block) == NULL);
  CHECK((vmresize)(vm, block, 30, 0) == block && (vmfree)(vm, block) == 0);
  expect("alert:region=V:block=A:size=40:being resized:\nalert:region=V:block=A:size=30:just resized:\n"
         "alert:region=V:block=A:size=30:being freed:\n", vm, block, NULL);
  CHECK(vmclear(vm) == 0 && (vmalloc)(vm, 50) == block);
  expect("alert:region=V:block=A:size=50:just allocated:\n", vm, block, NULL);
  for (at = 0; at < 31; at++) CHECK(vmdbwatch(places + at) == NULL);
  CHECK(vmdbwatch(places + 31) == block && vmdbwatch(places + 32) == places);
  CHECK((vmfree)(vm, block) == 0);
  expect("", vm, NULL, NULL);
  CHECK(vmdbwatch(NULL) == NULL && vmdbwatch(places) == NULL && vmdbwatch(NULL) == NULL);
  CHECK(vmclose(vm) == 0);
}

static void sizes_are_exact(void)
{
  Vmalloc_t *vm = vmopen(Vmdcheap, Vmdebug, VM_TRACE);
  char *block = (char *)(vmalloc)(vm, 29), *aligned = (char *)(vmalign)(vm, 10, 100);
  Vmstat_t st;
  char line[300], start[100];
  CHECK(vmsize(vm, block) == 29 && vmaddr(vm, block + 28) == 28 && vmaddr(vm, block + 29) == -1);
  CHECK(vmaddr(vm, block - 1) == -1 && vmregion(block) == vm && is_aligned(aligned, 100) && is_aligned(aligned, 16));
  CHECK(vmstat(vm, &st) == 0 && st.n_busy == 2 && st.s_busy == 39 && st.m_busy == 29);
  CHECK(st.mode == (VM_MTDEBUG | VM_TRACE) && is_aligned(block, 16));
  CHECK((vmfree)(vm, block) == 0 && is_zero(block, 29) && vmsize(vm, block) == -1);
  CHECK(vmtrace(fds[1]) == -1 && vmtrbusy(vm) == 0 && vmtrace(-1) == fds[1]);
  sprintf(start, "0:%lx:10:0:%lx:u:\n", (unsigned long)aligned, (unsigned long)vm);
  CHECK(read(fds[0], line, sizeof line) == (ssize_t)strlen(start) && memcmp(line, start, strlen(start)) == 0);
  CHECK(vmcompact(vm) == 0 && vmclose(vm) == 0);
}

/* The event VM_BADADDR comes too. */
static void events_come_too(void)
{
  struct recorder *it = recorder(127, ADDS);
  Vmalloc_t *vm;
  void *block;
  it->skew = 3;
  vm = vmopen(&it->disc, Vmdebug, 0);
  block = (vmalloc)(vm, 3000);
  it->log[0] = 0;
  CHECK((vmfree)(vm, it) == -1 && (vmresize)(vm, it, 1, 0) == NULL && (vmfree)(vm, block) == 0);
  expect_log(it, "bb");
  expect("free error:region=V:block=A:unallocated block:\nresize error:region=V:block=A:unallocated block:\n", vm, it,
         NULL);
  CHECK(vmclose(vm) == 0);
  free(it);
}

int main(void)
{
  CHECK(pipe(fds) == 0 && fcntl(fds[0], F_SETFL, O_NONBLOCK) == 0);
  CHECK(vmdebug(fds[1]) == 2 && vmdebug(-7) == fds[1] && vmdebug(fds[1]) == -7);
  each_mistake_has_its_line();
  names_are_kept();
  vmdbcheck_finds_overwritten_blocks();
  a_block_that_is_freed_while_it_is_resized_has_its_line();
  vm_dbcheck_checks_other_methods(Vmbest);
  vm_dbcheck_checks_other_methods(Vmprofile);
  other_methods();
  positions_of_the_call();
  vm_dbcheck_checks_at_each_call();
  vm_dbabort_ends_the_program();
  watches();
  sizes_are_exact();
  events_come_too();
  puts("ok");
  return 0;
}
