// Allocates known numbers of bytes at known places, and writes heap profiles by the key prof.dump.
//
//   profile_sites exact BEFORE AFTER    two profiles, between which memory grows
//   profile_sites sampled FILE          one place that allocates several sizes
//   profile_sites errors DIRECTORY      what prof.dump refuses
#include "api_check.h"
#include <lumalloc.h>
#include <dlfcn.h>
#include <errno.h>
#include <string>
#include <thread>
#include <vector>

static std::vector<void *> kept;

// The program is not linked with the library.
static int ctl(const char *name, void *oldp, size_t *oldlenp, const void *newp, size_t newlen)
{
  using Mallctl = int (*)(const char *, void *, size_t *, const void *, size_t);
  static const Mallctl mallctl = reinterpret_cast<Mallctl>(dlsym(RTLD_DEFAULT, "mallctl"));
  CHECK(mallctl != NULL);
  return mallctl(name, oldp, oldlenp, newp, newlen);
}

// Not inlined, and not left by a jump.
#define PLACE extern "C" __attribute__((noinline))
#define END asm volatile("")

PLACE void leaf(size_t size) { kept.push_back(malloc(size)); END; }
PLACE void inner(size_t size) { leaf(size); END; }
PLACE void outer(size_t size) { inner(size); END; }
PLACE void large(size_t size) { kept.push_back(malloc(size)); END; }
PLACE void zeroed(size_t size) { kept.push_back(calloc(1, size)); END; }
PLACE void resized(size_t size) { kept.push_back(realloc(malloc(16), size)); END; }
PLACE void aligned(size_t size) { kept.push_back(aligned_alloc(64, size)); END; }
struct Widget { char bytes[208]; };
PLACE void widgets(size_t count) { for (size_t i = 0; i < count; i++) kept.push_back(new Widget); END; }
PLACE void dropped(size_t count)
{
  for (size_t i = 0; i < count; i++) {
    Widget *volatile widget = new Widget;
    delete widget;
    free(malloc(48));
  }
  END;
}
PLACE void by_thread(size_t size) { std::thread([=] { leaf(size); END; }).join(); END; }

// A block that was freed by its size is noticed when it leaves the thread's cache.
static int dump(const char *name)
{
  CHECK(ctl("thread.tcache.flush", NULL, NULL, NULL, 0) == 0);
  return ctl("prof.dump", NULL, NULL, &name, sizeof name);
}

static void exact(const char *before, const char *after)
{
  kept.reserve(100000);
  for (int i = 0; i < 1000; i++) outer(112);
  for (int i = 0; i < 100; i++) large(1 << 20);
  CHECK(dump(before) == 0);
  for (int i = 0; i < 10; i++) large(2 << 20);
  for (int i = 0; i < 100; i++) { zeroed(320); resized(4096); aligned(128); }
  widgets(50);
  dropped(500);
  for (int i = 0; i < 10; i++) by_thread(112);
  CHECK(dump(after) == 0);
}

static void sampled(const char *name)
{
  kept.reserve(1000000);
  for (int i = 0; i < 100000; i++) leaf(i % 10 == 0 ? 8192 : 64);
  CHECK(dump(name) == 0);
}

static void errors(const std::string &directory)
{
  CHECK(dump((directory + "/nowhere/file").c_str()) == EFAULT);
  CHECK(dump(directory.c_str()) == EFAULT);
  bool on = true;
  size_t length = sizeof on, rate = 64;
  CHECK(ctl("prof.dump", &on, &length, NULL, 0) == EPERM);
  CHECK(ctl("prof.reset", NULL, NULL, &rate, sizeof rate) == EINVAL);
  const char *none = NULL, *prefix = "";
  CHECK(ctl("prof.prefix", NULL, NULL, &prefix, sizeof prefix) == 0);
  CHECK(ctl("prof.dump", NULL, NULL, &none, sizeof none) == EFAULT);
  const std::string own = directory + "/own";
  prefix = own.c_str();
  CHECK(ctl("prof.prefix", NULL, NULL, &prefix, sizeof prefix) == 0);
  CHECK(ctl("prof.dump", NULL, NULL, NULL, 0) == 0);
  CHECK(ctl("prof.dump", NULL, NULL, &none, sizeof none) == 0);
}

int main(int argc, char **argv)
{
  CHECK(argc > 2);
  const std::string what = argv[1];
  if (what == "exact") exact(argv[2], argv[3]);
  else if (what == "sampled") sampled(argv[2]);
  else errors(argv[2]);
  return 0;
}
