// The functions of a program that the heap profiler calls: experimental.hooks.prof_*.
//
//   profile_hooks on NAME   with prof:true,lg_prof_sample:0; NAME is a file for profiles
//   profile_hooks off       without prof:true
#include "api_check.h"
#include <lumalloc.h>
#include <dlfcn.h>
#include <errno.h>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <vector>

// The program is not linked with the library.
static int ctl(const char *name, void *oldp, size_t *oldlenp, const void *newp, size_t newlen)
{
  using Mallctl = int (*)(const char *, void *, size_t *, const void *, size_t);
  static const Mallctl mallctl = reinterpret_cast<Mallctl>(dlsym(RTLD_DEFAULT, "mallctl"));
  CHECK(mallctl != NULL);
  return mallctl(name, oldp, oldlenp, newp, newlen);
}

typedef void (*BacktraceHook)(void **, unsigned *, unsigned);
typedef void (*DumpHook)(const char *);
typedef void (*SampleHook)(const void *, size_t, void **, unsigned, size_t);
typedef void (*SampleFreeHook)(const void *, size_t);

#define PREFIX "experimental.hooks.prof_"

template <typename Hook> static int set(const char *name, Hook hook)
{
  return ctl(name, NULL, NULL, &hook, sizeof hook);
}

template <typename Hook> static Hook get(const char *name)
{
  Hook hook;
  size_t length = sizeof hook;
  CHECK(ctl(name, &hook, &length, NULL, 0) == 0 && length == sizeof hook);
  return hook;
}

static size_t live()
{
  size_t count, length = sizeof count;
  CHECK(ctl("prof.samples.live", &count, &length, NULL, 0) == 0);
  return count;
}

// What the hooks saw last, and how often they were called.
static const void *sampled, *freed;
static size_t requested, usable, freed_usable;
static unsigned depth;
static void *stack[2];
static int samples, frees;

static void note_sample(const void *block, size_t size, void **frames, unsigned count, size_t bytes)
{
  sampled = block, requested = size, depth = count, usable = bytes;
  stack[0] = count > 0 ? frames[0] : NULL;
  stack[1] = count > 1 ? frames[1] : NULL;
  samples++;
  // What a hook allocates is no sample.
  free(malloc(100));
  errno = ENOTTY;
}

static void note_free(const void *block, size_t bytes)
{
  freed = block, freed_usable = bytes;
  frees++;
  free(malloc(1 << 20));
}

static void each_way()
{
  CHECK(get<SampleHook>(PREFIX "sample") == NULL && get<SampleFreeHook>(PREFIX "sample_free") == NULL);
  CHECK(set(PREFIX "sample", note_sample) == 0 && set(PREFIX "sample_free", note_free) == 0);
  CHECK(get<SampleHook>(PREFIX "sample") == note_sample);
  samples = frees = 0;
  for (size_t size : {(size_t)100, (size_t)5000, (size_t)100000, (size_t)3 << 20}) {
    const size_t before = live();
    errno = 0;
    void *block = malloc(size);
    CHECK(errno == 0 && samples == 1 && frees == 0 && sampled == block && live() == before + 1);
    CHECK(requested == size && usable == malloc_usable_size(block) && depth > 0);
    free(block);
    CHECK(samples == 1 && frees == 1 && freed == block && freed_usable == usable && live() == before);
    samples = frees = 0;
  }
  // A block that is freed by its size is noticed when its place is used again.
  void *first = operator new(200);
  operator delete(first, (size_t)200);
  void *second = operator new(200);
  CHECK(samples == 2 && frees == 1 && freed == first && sampled == second);
  void *longer = realloc(second, 100000);
  CHECK(samples == 3 && frees == 2 && freed == second && sampled == longer && requested == 100000);
  free(longer);
  CHECK(frees == 3);
  SampleHook none = NULL;
  CHECK(set(PREFIX "sample", none) == 0);
  void *untold = malloc(64);
  CHECK(samples == 3);
  SampleFreeHook no_free = NULL;
  CHECK(set(PREFIX "sample_free", no_free) == 0);
  free(untold);
  CHECK(frees == 3 && get<SampleFreeHook>(PREFIX "sample_free") == NULL);
}

// A map of the samples in use, which the hooks keep. Its own memory is no sample.
static std::mutex lock;
static std::map<const void *, size_t> *blocks;
static int unknown;

static void put(const void *block, size_t, void **, unsigned, size_t bytes)
{
  const std::lock_guard<std::mutex> held(lock);
  unknown += !blocks->insert({block, bytes}).second;
}

static void take(const void *block, size_t bytes)
{
  const std::lock_guard<std::mutex> held(lock);
  auto found = blocks->find(block);
  if (found == blocks->end() || found->second != bytes) unknown++;
  else blocks->erase(found);
}

static void many_threads()
{
  blocks = new std::map<const void *, size_t>;
  std::vector<std::thread> threads;
  threads.reserve(4);
  void *kept[4][500];
  const size_t before = live();
  CHECK(set(PREFIX "sample", put) == 0 && set(PREFIX "sample_free", take) == 0);
  for (auto &mine : kept) {
    threads.emplace_back([&mine] {
      for (int i = 0; i < 20000; i++) {
        void *&block = mine[i % 500];
        if (i >= 500) free(block);
        block = malloc(16 + i % 7 * 200 + (i % 300 == 0 ? 1 << 20 : 0));
      }
    });
  }
  for (auto &thread : threads) thread.join();
  size_t found = 0;
  for (auto &mine : kept)
    for (void *block : mine) found += blocks->count(block);
  CHECK(found == 4 * 500);
  for (auto &mine : kept)
    for (void *block : mine) free(block);
  SampleHook none = NULL;
  CHECK(set(PREFIX "sample", none) == 0);
  // Of the samples before, the threads freed the records that started them.
  CHECK(unknown <= 4 * 4 && blocks->size() + before >= live());
  SampleFreeHook no_free = NULL;
  CHECK(set(PREFIX "sample_free", no_free) == 0);
}

static BacktraceHook allocators_own;

static void two_frames(void **frames, unsigned *count, unsigned most)
{
  CHECK(most == 128);
  frames[0] = (void *)0x1111, frames[1] = (void *)0x2222;
  *count = 2;
}

static void too_many(void **, unsigned *count, unsigned) { *count = 100000; }

static void own(void **frames, unsigned *count, unsigned most) { allocators_own(frames, count, most); }

static void backtraces()
{
  CHECK(set(PREFIX "sample", note_sample) == 0);
  allocators_own = get<BacktraceHook>(PREFIX "backtrace");
  CHECK(allocators_own != NULL);
  BacktraceHook none = NULL;
  CHECK(set(PREFIX "backtrace", none) == EINVAL);
  CHECK(get<BacktraceHook>(PREFIX "backtrace") == allocators_own);
  const auto sample = [] { free(malloc(64)); };
  sample();
  void *place = stack[0];
  CHECK(depth > 1 && depth < 128);
  CHECK(set(PREFIX "backtrace", own) == 0);
  sample();
  CHECK(stack[0] == place && depth > 1);
  CHECK(set(PREFIX "backtrace", two_frames) == 0);
  sample();
  CHECK(depth == 2 && stack[0] == (void *)0x1111 && stack[1] == (void *)0x2222);
  CHECK(set(PREFIX "backtrace", too_many) == 0);
  sample();
  CHECK(depth == 128);
  CHECK(set(PREFIX "backtrace", allocators_own) == 0);
  sample();
  CHECK(stack[0] == place);
}

static void no_frames(void **, unsigned *count, unsigned) { *count = 0; }

static void *kept[30];

__attribute__((noinline)) static void earlier_place()
{
  for (int i = 0; i < 10; i++) kept[i] = malloc(112);
}

__attribute__((noinline)) static void later_place()
{
  for (int i = 20; i < 30; i++) kept[i] = malloc(112);
}

// Blocks without a stack, between those of two places. They are left for the profile.
static void without_a_stack()
{
  earlier_place();
  CHECK(set(PREFIX "backtrace", no_frames) == 0);
  for (int i = 10; i < 20; i++) kept[i] = malloc(4096);
  CHECK(depth == 0 && requested == 4096);
  CHECK(set(PREFIX "backtrace", allocators_own) == 0);
  later_place();
}

static std::string written;

static void note_dump(const char *name) { written += name; written += ";"; }

static void dumps(const char *name)
{
  CHECK(get<DumpHook>(PREFIX "dump") == NULL && set(PREFIX "dump", note_dump) == 0);
  const char *nowhere = "nowhere/at/all";
  CHECK(ctl("prof.dump", NULL, NULL, &nowhere, sizeof nowhere) == EFAULT && written == "");
  CHECK(ctl("prof.dump", NULL, NULL, &name, sizeof name) == 0 && written == std::string(name) + ";");
}

static size_t told_bytes, told_frees;

static void note_allocated(const void *, size_t size)
{
  told_bytes += size;
}

static void note_freed(const void *)
{
  told_frees++;
}

// Each allocation and each free, with and without prof:true.
static void of_all()
{
  typedef void (*AllocatedHook)(const void *, size_t);
  typedef void (*FreedHook)(const void *);
  CHECK(set("experimental.hooks.allocated", note_allocated) == 0);
  CHECK(set("experimental.hooks.freed", note_freed) == 0);
  CHECK(get<AllocatedHook>("experimental.hooks.allocated") == note_allocated);
  told_bytes = told_frees = 0;
  free(malloc(1000));
  delete[] new char[2000];
  CHECK(told_bytes == 3000 && told_frees == 2);
  CHECK(set("experimental.hooks.allocated", AllocatedHook(NULL)) == 0);
  CHECK(set("experimental.hooks.freed", FreedHook(NULL)) == 0);
  free(malloc(1000));
  CHECK(told_bytes == 3000 && told_frees == 2);
}

static void off()
{
  of_all();
  CHECK(set(PREFIX "sample", note_sample) == ENOENT && set(PREFIX "sample_free", note_free) == ENOENT);
  CHECK(set(PREFIX "dump", note_dump) == ENOENT && set(PREFIX "backtrace", own) == ENOENT);
  CHECK(get<SampleHook>(PREFIX "sample") == NULL && get<BacktraceHook>(PREFIX "backtrace") != NULL);
}

int main(int argc, char **argv)
{
  if (argc == 2 && argv[1] == std::string("off")) {
    off();
    return 0;
  }
  CHECK(argc == 3);
  of_all();
  each_way();
  many_threads();
  backtraces();
  without_a_stack();
  dumps(argv[2]);
  return 0;
}
