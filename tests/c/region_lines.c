/*
 * With VMFL each call records its own line, and does so last before the call, also when its arguments
 * allocate. Functions of this program stand in for the library's.
 */
#define VMFL
#include "vmalloc.h"

#include <stdio.h>

static int recorded;
static int strangers, lost;

/* Each position names this file and main. */
void vmfileline(const char *file, int line, const char *func)
{
  strangers += strcmp(file, __FILE__) != 0 || strcmp(func, "main") != 0;
  recorded = line;
}

static void take(const char *name)
{
  printf("%s %d\n", name, recorded);
  lost += recorded == 0;
  recorded = 0;
}

static char block[8];

void *(vmalloc)(Vmalloc_t *vm, size_t size)
{
  (void)vm, (void)size;
  return take("vmalloc"), block;
}

void *(vmalign)(Vmalloc_t *vm, size_t size, size_t align)
{
  (void)vm, (void)size, (void)align;
  return take("vmalign"), block;
}

void *(vmresize)(Vmalloc_t *vm, void *addr, size_t size, int type)
{
  (void)vm, (void)addr;
  take(size == 19 && type == 7 ? "vmnewof" : size == 16 && type == 2 ? "vmoldof" : "vmresize");
  return block;
}

int (vmfree)(Vmalloc_t *vm, void *addr)
{
  (void)vm, (void)addr;
  return take("vmfree"), 0;
}

size_t vmnewsize(size_t n, size_t size, size_t extra)
{
  return n * size + extra;
}

int main(void)
{
  size_t count = 2;
  void *made;
#line 1
  made = vmnewof(NULL, NULL, double, count++, 3);
  made = vmoldof(NULL, made, double, --count, 0);
  made = vmresize(NULL, vmalign(NULL, 5, 6), vmalloc(NULL, 7) != NULL, 0);
  vmfree(NULL, made);
  printf("%s\n", count == 2 && strangers == 0 && lost == 0 ? "ok" : "wrong");
  return 0;
}
