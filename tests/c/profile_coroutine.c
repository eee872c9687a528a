/* Allocates on the stack of a coroutine, whose first function returns into a function of C, as
   libraries of green threads have it. The stack ends there, and the memory behind it cannot be
   read. The rule of the instruction before is that of another function, with a large frame. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SIZE = 64 << 10, REGISTERS = 6 };

void switch_stack(void **old, void *new_stack);
#if defined(__x86_64__)
__asm__(".text\n"
        ".globl switch_stack\n"
        "switch_stack:\n"
        "  push %rbx\n  push %rbp\n  push %r12\n  push %r13\n  push %r14\n  push %r15\n"
        "  mov %rsp, (%rdi)\n"
        "  mov %rsi, %rsp\n"
        "  pop %r15\n  pop %r14\n  pop %r13\n  pop %r12\n  pop %rbp\n  pop %rbx\n"
        "  ret\n");
#endif

static void *first_stack, *coroutine;
static void *volatile kept[1000];

__attribute__((noinline, noreturn)) void fail(const char *why) {
  char line[4096];
  snprintf(line, sizeof line, "fatal: %s", why);
  fputs(line, stderr);
  abort();
}

__attribute__((noinline)) void ended(void) {
  switch_stack(&coroutine, first_stack);
  fail("a coroutine that has ended goes on");
}

__attribute__((noinline)) static void allocate(void) {
  for (int i = 0; i < 1000; i++) kept[i] = malloc(1000 + i);
}

static void on_signal(int number) {
  (void)number;
  free(kept[0]);
  kept[0] = malloc(1000);
}

int main(void) {
  char *memory = mmap(NULL, 3 * SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory + SIZE, SIZE, PROT_READ | PROT_WRITE) != 0) return 1;
  void **stack = (void **)(memory + 2 * SIZE);
  *--stack = (void *)ended;
  *--stack = (void *)allocate;
  for (int i = 0; i < REGISTERS; i++) *--stack = NULL;
  switch_stack(&first_stack, stack);
  for (int i = 0; i < 1000; i++) free(kept[i]);

  /* A handler of a signal with the smallest stack of its own. */
  kept[0] = NULL;
  stack_t own = {.ss_sp = memory + SIZE, .ss_size = 16 << 10};
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
  if (sigaltstack(&own, NULL) != 0 || sigaction(SIGUSR1, &action, NULL) != 0) return 1;
  raise(SIGUSR1);
  puts("done");
  return 0;
}
