// Threads allocate known numbers of bytes at known places, all at once, and exit. Others free a
// part of it, and a child of fork allocates more. The profile is written at the end.
//
//   profile_threads [FILE]
#include "api_check.h"
#include <atomic>
#include <dlfcn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

enum { THREADS = 8, BLOCKS = 5000, TEMPORARY = 4 };
#define PLACE extern "C" __attribute__((noinline, noclone))
#define END __asm__ volatile("")

static std::atomic<int> ready;
static std::vector<void *> kept[THREADS];

PLACE void *small_block(void) { void *block = malloc(64); END; return block; }
PLACE void *large_block(void) { void *block = malloc(20000); END; return block; }
PLACE void *dropped_block(void) { void *block = malloc(96); END; return block; }

static void work(int thread)
{
  ready++;
  while (ready < THREADS) std::this_thread::yield();
  kept[thread].reserve(2 * BLOCKS);
  for (int i = 0; i < BLOCKS; i++) {
    kept[thread].push_back(small_block());
    if (i % 50 == 0) kept[thread].push_back(large_block());
    void *some[TEMPORARY];
    for (void *&one : some) one = dropped_block();
    for (void *one : some) free(one);
  }
}

static void dump(const char *name)
{
  using Mallctl = int (*)(const char *, void *, size_t *, const void *, size_t);
  const Mallctl mallctl = reinterpret_cast<Mallctl>(dlsym(RTLD_DEFAULT, "mallctl"));
  CHECK(mallctl != NULL);
  CHECK(mallctl("prof.dump", NULL, NULL, &name, sizeof name) == 0);
}

int main(int count, char **arguments)
{
  CHECK(count == 3);
  std::vector<std::thread> threads;
  for (int i = 0; i < THREADS; i++) threads.emplace_back(work, i);
  // Threads come and go meanwhile.
  for (int i = 0; i < 200; i++) std::thread([] { free(dropped_block()); }).join();
  for (std::thread &thread : threads) thread.join();
  // Half of the small blocks are freed by another thread than the one that allocated them.
  std::thread([] {
    for (std::vector<void *> &blocks : kept)
      for (size_t i = 0; i < BLOCKS; i += 2) {
        size_t place = i + (i + 49) / 50;
        free(blocks[place]);
        blocks[place] = NULL;
      }
  }).join();
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    for (int i = 0; i < 10; i++) CHECK(large_block() != NULL);
    dump(arguments[2]);
    _exit(0);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  dump(arguments[1]);
  return 0;
}
