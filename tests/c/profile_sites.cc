// Allocates known numbers of bytes at known places, and writes heap profiles by the key prof.dump.
//
//   profile_sites exact BEFORE AFTER    two profiles, between which memory grows
//   profile_sites sampled FILE          one place that allocates several sizes
//   profile_sites leak COUNT            blocks that are not freed
//   profile_sites keys on|off          the keys of the profiler, with prof:true or without
//   profile_sites nomemory FILE...  profiles without memory from the system
//   profile_sites classes           known numbers of blocks of known classes, with prof_stats:true
//   profile_sites maxima            blocks that the heap grows by, in part with prof.gdump
//   profile_sites serve             blocks that stay until the end of standard input, and one for
//                                   each byte of it
//   profile_sites errors DIRECTORY      what prof.dump refuses
#include "api_check.h"
#include <lumalloc.h>
#include <dlfcn.h>
#include <errno.h>
#include <sys/resource.h>
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

static int dump(const char *name)
{
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
  size_t length = sizeof on, rate = 19;
  CHECK(ctl("prof.dump", &on, &length, NULL, 0) == EPERM);
  CHECK(ctl("prof.reset", NULL, NULL, &rate, sizeof rate - 1) == EINVAL);
  const char *none = NULL, *prefix = "";
  CHECK(ctl("prof.prefix", NULL, NULL, &prefix, sizeof prefix) == 0);
  CHECK(ctl("prof.dump", NULL, NULL, &none, sizeof none) == EFAULT);
  const std::string own = directory + "/own";
  prefix = own.c_str();
  CHECK(ctl("prof.prefix", NULL, NULL, &prefix, sizeof prefix) == 0);
  CHECK(ctl("prof.dump", NULL, NULL, NULL, 0) == 0);
  CHECK(ctl("prof.dump", NULL, NULL, &none, sizeof none) == 0);
}

// Profiles of a process that may have no page more.
static void nomemory(int count, char **names)
{
  kept.reserve(100000);
  for (int i = 0; i < 1000; i++) outer(112);
  for (int i = 0; i < 100; i++) large(1 << 20);
  rlimit limit = {1, 1};
  CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
  while (malloc(1 << 20) != NULL) continue;
  for (int i = 0; i < count; i++) CHECK(dump(names[i]) == 0);
}

static void serve()
{
  kept.reserve(100000);
  for (int i = 0; i < 1000; i++) outer(112);
  for (int i = 0; i < 100; i++) large(1 << 20);
  dropped(500);
  puts("ready");
  fflush(stdout);
  // A byte frees the last large block, others allocate one.
  for (int byte = getchar(); byte != EOF; byte = getchar()) {
    if (byte == '-') { free(kept.back()); kept.pop_back(); }
    else large(1 << 20);
  }
}

template <typename T> static T value(const char *name)
{
  T value = {};
  size_t length = sizeof value;
  CHECK(ctl(name, &value, &length, NULL, 0) == 0 && length == sizeof value);
  return value;
}

struct Stats { uint64_t req_sum, count; };

// A value of a class. The name allocates nothing.
template <typename T> static T of_class(const char *kind, unsigned index, const char *which)
{
  char name[64];
  CHECK(snprintf(name, sizeof name, "%s.%u.%s", kind, index, which) < 64);
  return value<T>(name);
}

static Stats stats_of_bin(unsigned index, const char *which)
{
  return of_class<Stats>("prof.stats.bins", index, which);
}

static Stats stats_of_lextent(unsigned index, const char *which)
{
  return of_class<Stats>("prof.stats.lextents", index, which);
}

static void classes()
{
  CHECK(value<bool>("opt.prof_stats"));
  kept.reserve(100000);
  const unsigned bins = value<unsigned>("arenas.nbins"), extents = value<unsigned>("arenas.nlextents");
  unsigned bin = 0, extent = 0;
  while (of_class<size_t>("arenas.bin", bin, "size") < 1000) bin++;
  while (of_class<size_t>("arenas.lextent", extent, "size") < 1000000) extent++;
  const Stats live = stats_of_bin(bin, "live"), accum = stats_of_bin(bin, "accum");
  const Stats live_large = stats_of_lextent(extent, "live"), accum_large = stats_of_lextent(extent, "accum");
  for (int i = 0; i < 10; i++) leaf(1000);
  for (int i = 0; i < 10; i++) leaf(999);
  for (int i = 0; i < 10; i++) large(1000000);
  for (int i = 0; i < 5; i++) { free(kept.back()); kept.pop_back(); }
  Stats now = stats_of_bin(bin, "live");
  CHECK(now.count == live.count + 20 && now.req_sum == live.req_sum + 19990);
  now = stats_of_bin(bin, "accum");
  CHECK(now.count == accum.count + 20 && now.req_sum == accum.req_sum + 19990);
  now = stats_of_lextent(extent, "live");
  CHECK(now.count == live_large.count + 5 && now.req_sum == live_large.req_sum + 5000000);
  now = stats_of_lextent(extent, "accum");
  CHECK(now.count == accum_large.count + 10 && now.req_sum == accum_large.req_sum + 10000000);
  // All classes together have all samples.
  uint64_t all = 0;
  for (unsigned i = 0; i < bins; i++) all += stats_of_bin(i, "live").count;
  for (unsigned i = 0; i < extents; i++) all += stats_of_lextent(i, "live").count;
  CHECK(all == value<size_t>("prof.samples.live"));
  size_t length = 8;
  Stats place;
  CHECK(ctl("prof.stats.bins.0.live", &place, &length, NULL, 0) == EINVAL);
  length = sizeof place;
  CHECK(ctl("prof.stats.bins.0.live", &place, &length, &place, sizeof place) == EPERM);
  CHECK(ctl("prof.stats.bins.1000.live", &place, &length, NULL, 0) == ENOENT);
}

static void maxima()
{
  CHECK(value<bool>("prof.gdump") && value<bool>("opt.prof_gdump"));
  kept.reserve(100000);
  for (int i = 0; i < 10; i++) large(16 << 20);
  free(kept.back());
  kept.pop_back();
  bool off = false;
  CHECK(ctl("prof.gdump", NULL, NULL, &off, sizeof off) == 0 && !value<bool>("prof.gdump"));
  for (int i = 0; i < 10; i++) large(16 << 20);
}

static int set(const char *name, bool to) { return ctl(name, NULL, NULL, &to, sizeof to); }

static bool is_sampled()
{
  size_t before = value<size_t>("prof.samples.live");
  void *block = malloc(112);
  bool sampled = value<size_t>("prof.samples.live") == before + 1;
  free(block);
  CHECK(value<size_t>("prof.samples.live") == before);
  return sampled;
}

static void keys()
{
  CHECK(value<bool>("opt.prof") && value<bool>("prof.active") && value<bool>("thread.prof.active"));
  CHECK(value<bool>("prof.thread_active_init") && value<size_t>("prof.lg_sample") == 0);
  CHECK(value<uint64_t>("prof.interval") == 0 && is_sampled());
  CHECK(set("prof.active", false) == 0 && !value<bool>("prof.active") && !is_sampled());
  CHECK(set("prof.active", true) == 0 && is_sampled());
  CHECK(set("thread.prof.active", false) == 0 && !is_sampled());
  std::thread([] { CHECK(is_sampled()); }).join();
  CHECK(set("thread.prof.active", true) == 0 && set("prof.thread_active_init", false) == 0);
  std::thread([] { CHECK(!is_sampled() && !value<bool>("thread.prof.active")); }).join();
  CHECK(value<uint64_t>("prof.samples.taken") > 0 && value<uint64_t>("prof.samples.missed") == 0);
  CHECK(value<uint64_t>("prof.samples.stacks") > 0 && value<uint64_t>("prof.samples.bytes") > 0);
  size_t rate = 30;
  CHECK(ctl("prof.reset", NULL, NULL, &rate, sizeof rate) == 0);
  CHECK(value<size_t>("prof.lg_sample") == 30 && value<size_t>("prof.samples.live") == 0);
  CHECK(ctl("prof.reset", NULL, NULL, NULL, 0) == 0 && value<size_t>("prof.lg_sample") == 30);
  // As in jemalloc, the lowest rate there is.
  for (size_t low : {(size_t)64, (size_t)1 << 32, SIZE_MAX}) {
    CHECK(ctl("prof.reset", NULL, NULL, &rate, sizeof rate) == 0 && value<size_t>("prof.lg_sample") == 30);
    CHECK(ctl("prof.reset", NULL, NULL, &low, sizeof low) == 0 && value<size_t>("prof.lg_sample") == 63);
  }
}

static void off()
{
  CHECK(!value<bool>("opt.prof") && !value<bool>("prof.active") && !is_sampled());
  CHECK(set("prof.active", true) == ENOENT && set("prof.active", false) == 0);
  CHECK(set("thread.prof.active", true) == ENOENT && set("prof.thread_active_init", true) == ENOENT);
  CHECK(ctl("prof.reset", NULL, NULL, NULL, 0) == ENOENT && dump("never.heap") == ENOENT);
  Stats none;
  size_t length = sizeof none;
  CHECK(ctl("prof.stats.bins.0.live", &none, &length, NULL, 0) == ENOENT);
  // As in jemalloc, what is off reads as off.
  CHECK(!value<bool>("thread.prof.active") && !value<bool>("prof.thread_active_init"));
  CHECK(!value<bool>("prof.gdump") && set("prof.gdump", false) == ENOENT);
  CHECK(value<uint64_t>("prof.interval") == 0 && value<size_t>("prof.lg_sample") == 0);
  const char *name;
  length = sizeof name;
  CHECK(ctl("thread.prof.name", &name, &length, NULL, 0) == ENOENT);
}

int main(int argc, char **argv)
{
  CHECK(argc > 2 || (argc == 2 && (argv[1] == std::string("serve") || argv[1] == std::string("maxima") ||
                                    argv[1] == std::string("classes"))));
  const std::string what = argv[1];
  if (what == "classes") classes();
  else if (what == "exact") exact(argv[2], argv[3]);
  else if (what == "sampled") sampled(argv[2]);
  else if (what == "serve") serve();
  else if (what == "maxima") maxima();
  else if (what == "nomemory") nomemory(argc - 2, argv + 2);
  else if (what == "keys" && argv[2] == std::string("on")) keys();
  else if (what == "keys") off();
  else if (what == "leak") for (int i = 0; i < atoi(argv[2]); i++) leaf(1 << 20);
  else errors(argv[2]);
  return 0;
}
