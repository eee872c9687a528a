// Threads allocate and free, and the main thread sets another rate of the heap profiler by the key
// prof.reset. What the threads keep afterwards is written to FILE.
//
//   profile_reset FILE   with prof:true, and any lg_prof_sample before
//
// Each thread keeps BLOCKS blocks of each size, and stands in the middle of none of its calls at the reset.
#include "api_check.h"
#include <pthread.h>

// The program is not linked with the library.
#pragma weak mallctl

enum { THREADS = 8, BLOCKS = 20, SIZES = 6, WARM = 3000 };

static const size_t sizes[SIZES] = {16, 64, 112, 1024, 8192, 20480};
static pthread_barrier_t barrier;
static void *kept[THREADS + 2][SIZES][BLOCKS];

__attribute__((noinline)) static void keep(size_t thread)
{
  for (size_t size = 0; size < SIZES; size++)
    for (size_t i = 0; i < BLOCKS; i++) CHECK((kept[thread][size][i] = malloc(sizes[size])) != NULL);
  __asm__ volatile("");
}

static void warm(void)
{
  for (size_t size = 0; size < SIZES; size++)
    for (int i = 0; i < WARM; i++) {
      void *block = malloc(sizes[size]);
      __asm__ volatile("" : : "r"(block) : "memory");
      free(block);
    }
}

static void *run(void *thread)
{
  warm();
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  keep((size_t)thread);
  pthread_barrier_wait(&barrier);
  return NULL;
}

// Begins after the reset, with the cache of a thread that ended before it.
static void *run_late(void *thread)
{
  keep((size_t)thread);
  return NULL;
}

static void *run_early(void *thread)
{
  (void)thread;
  warm();
  return NULL;
}

int main(int argc, char **argv)
{
  CHECK(argc == 2);
  pthread_t threads[THREADS], other;
  CHECK(pthread_barrier_init(&barrier, NULL, THREADS + 1) == 0);
  for (size_t i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, run, (void *)i) == 0);
  CHECK(pthread_create(&other, NULL, run_early, NULL) == 0);
  pthread_join(other, NULL);
  warm();
  pthread_barrier_wait(&barrier);
  size_t every_byte = 0;
  CHECK(mallctl("prof.reset", NULL, NULL, &every_byte, sizeof every_byte) == 0);
  pthread_barrier_wait(&barrier);
  keep(THREADS);
  CHECK(pthread_create(&other, NULL, run_late, (void *)(size_t)(THREADS + 1)) == 0);
  pthread_join(other, NULL);
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  const char *file = argv[1];
  CHECK(mallctl("prof.dump", NULL, NULL, &file, sizeof file) == 0);
  return 0;
}
