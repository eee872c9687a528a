// Names of threads in heap profiles: thread.prof.name and opt.prof_sys_thread_name.
//
//   profile_names own FILE      threads that name themselves, with prof:true,lg_prof_sample:0
//   profile_names system FILE   threads that the system names, with prof_sys_thread_name:true too
//   profile_names off           without prof:true
#include "api_check.h"
#include <lumalloc.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string>
#include <thread>

// The program is not linked with the library.
static int ctl(const char *name, void *oldp, size_t *oldlenp, const void *newp, size_t newlen)
{
  using Mallctl = int (*)(const char *, void *, size_t *, const void *, size_t);
  static const Mallctl mallctl = reinterpret_cast<Mallctl>(dlsym(RTLD_DEFAULT, "mallctl"));
  CHECK(mallctl != NULL);
  return mallctl(name, oldp, oldlenp, newp, newlen);
}

static int set(const char *name) { return ctl("thread.prof.name", NULL, NULL, &name, sizeof name); }

static std::string name()
{
  const char *now;
  size_t length = sizeof now;
  CHECK(ctl("thread.prof.name", &now, &length, NULL, 0) == 0 && length == sizeof now);
  return now;
}

static void *kept[10];

extern "C" __attribute__((noinline)) void leaf(int at) { kept[at] = malloc(1000); asm volatile(""); }

static void dump(const char *file) { CHECK(ctl("prof.dump", NULL, NULL, &file, sizeof file) == 0); }

static void rules()
{
  CHECK(name() == "" && set("main \tone") == 0 && name() == "main \tone");
  CHECK(set("two\nlines") == EINVAL && set("caf\xc3\xa9") == EINVAL && set(NULL) == EINVAL);
  const char *now, *next = "next";
  size_t length = sizeof now;
  CHECK(ctl("thread.prof.name", &now, &length, &next, sizeof next) == EPERM);
  CHECK(name() == "main \tone" && set("0123456789abcdefgh") == 0 && name() == "0123456789abcde");
}

static void own(const char *file)
{
  rules();
  leaf(0);
  CHECK(set("first") == 0);
  leaf(1);
  std::thread([] {
    CHECK(name() == "");
    leaf(2);
    CHECK(set("first") == 0);
    leaf(3);
    CHECK(set("second") == 0);
    leaf(4);
    leaf(5);
  }).join();
  // A thread begins without a name, also if it has the record of one that had.
  std::thread([] { CHECK(name() == ""); leaf(6); }).join();
  CHECK(set("") == 0 && name() == "");
  leaf(7);
  free(kept[5]);
  dump(file);
}

static void by_system(const char *file)
{
  CHECK(pthread_setname_np(pthread_self(), "before") == 0);
  leaf(0);
  CHECK(name() == "before" && set("own") == ENOENT);
  CHECK(pthread_setname_np(pthread_self(), "after") == 0);
  leaf(1);
  leaf(2);
  CHECK(name() == "after");
  dump(file);
}

int main(int argc, char **argv)
{
  CHECK(argc >= 2);
  const std::string what = argv[1];
  if (what == "own") own(argv[2]);
  else if (what == "system") by_system(argv[2]);
  else CHECK(set("any") == ENOENT);
  return 0;
}
