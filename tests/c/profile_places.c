// Allocates where a walk over the stack is hard, and writes a heap profile by the key prof.dump.
//
//   profile_places modules FILE ONE OTHER   in a module, and in another at the same addresses
//   profile_places signals FILE             in signal handlers, on the stack and on one of their own
//   profile_places full FILE                where no file can grow, as on a full disk
#include "api_check.h"
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

// Not inlined, and not left by a jump.
#define PLACE __attribute__((noinline))
#define END __asm__ volatile("")

enum { BLOCKS = 100, BYTES = 112 };

static void *kept[8 * BLOCKS];
static size_t count;

static void keep(void *block)
{
  CHECK(block != NULL && count < sizeof kept / sizeof kept[0]);
  kept[count++] = block;
}

// The program is not linked with the library.
static int dump(const char *name)
{
  int (*ctl)(const char *, void *, size_t *, const void *, size_t) = dlsym(RTLD_DEFAULT, "mallctl");
  CHECK(ctl != NULL);
  return ctl("prof.dump", NULL, NULL, &name, sizeof name);
}

typedef void *plugin_function(size_t);

PLACE void through_one(plugin_function *plugin)
{
  for (int i = 0; i < BLOCKS; i++) keep(plugin(BYTES));
  END;
}

PLACE void through_other(plugin_function *plugin)
{
  for (int i = 0; i < BLOCKS; i++) keep(plugin(BYTES));
  END;
}

// Calls `place` with the function of a module, and returns the address of the function.
static uintptr_t opened(const char *path, void (*place)(plugin_function *))
{
  void *module = dlopen(path, RTLD_NOW);
  CHECK(module != NULL);
  plugin_function *plugin = (plugin_function *)dlsym(module, "plugin");
  CHECK(plugin != NULL);
  place(plugin);
  CHECK(dlclose(module) == 0);
  return (uintptr_t)plugin;
}

static void in_modules(const char *one, const char *other)
{
  uintptr_t first = opened(one, through_one);
  // The system gives the addresses again, because the modules have the same length.
  CHECK(opened(other, through_other) == first);
  CHECK(opened(one, through_one) == first);
}

PLACE void handler(int signal)
{
  (void)signal;
  keep(malloc(BYTES));
  END;
}

// Threads have signals at the end of small stacks, and begin with frames of the C library.
static void *signals(void *own)
{
  stack_t stack = {.ss_sp = own, .ss_size = 1 << 16};
  struct sigaction action = {.sa_handler = handler};
  CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
  action.sa_flags = SA_ONSTACK;
  CHECK(sigaction(SIGUSR2, &action, NULL) == 0);
  CHECK(sigaltstack(&stack, NULL) == 0);
  for (int i = 0; i < BLOCKS; i++) CHECK(raise(i % 2 ? SIGUSR1 : SIGUSR2) == 0);
  return NULL;
}

static void in_signals(void)
{
  static char own[2][1 << 16];
  pthread_t thread;
  signals(own[0]);
  CHECK(pthread_create(&thread, NULL, signals, own[1]) == 0 && pthread_join(thread, NULL) == 0);
}

// What is written at the exit finds no room either.
static void full(void)
{
  struct rlimit limit = {16, RLIM_INFINITY};
  CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  void *volatile block = malloc(BYTES);
  free(block);
}

int main(int argc, char **argv)
{
  CHECK(argc > 2);
  if (strcmp(argv[1], "modules") == 0) {
    CHECK(argc == 5);
    in_modules(argv[3], argv[4]);
  } else if (strcmp(argv[1], "signals") == 0) {
    in_signals();
  } else {
    CHECK(strcmp(argv[1], "full") == 0);
    full();
    CHECK(dump(argv[2]) == EFAULT);
    return 0;
  }
  CHECK(dump(argv[2]) == 0);
  return 0;
}
