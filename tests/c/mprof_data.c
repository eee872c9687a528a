/* Allocates known numbers of blocks, with the functions of mprof(1).
 *
 *   mprof_data once                 10000 blocks of 204 bytes, of which every second is freed
 *   mprof_data restart FILE         ends the profile, allocates, and begins another one
 *   mprof_data autosave             writes the profile after each 100 allocations
 *   mprof_data fork                 a child that ends as its parent does
 *   mprof_data wrong                functions in the wrong order
 */
#include "api_check.h"
#include <lumalloc.h>
#include <dlfcn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLACE __attribute__((noinline))

struct widget { char bytes[204]; };

PLACE static struct widget *make_widget(void)
{
  struct widget *volatile widget = malloc(sizeof *widget);
  return widget;
}

PLACE static struct widget *make_red_widget(void)
{
  struct widget *volatile widget = make_widget();
  return widget;
}

PLACE static void make(int count)
{
  for (int i = 0; i < count; i++) {
    struct widget *widget = make_red_widget();
    if (i % 2) free(widget);
  }
}

/* The program is not linked with the library. */
static void *function(const char *name)
{
  void *found = dlsym(RTLD_DEFAULT, name);
  CHECK(found != NULL);
  return found;
}

static void stop(void) { ((void (*)(void))function("mprof_stop"))(); }
static void restart(const char *name) { ((void (*)(const char *))function("mprof_restart"))(name); }
static void autosave(int count) { ((void (*)(int))function("set_mprof_autosave"))(count); }

int main(int argc, char **argv)
{
  CHECK(argc > 1);
  struct stat status;
  if (strcmp(argv[1], "once") == 0) {
    make(10000);
  } else if (strcmp(argv[1], "restart") == 0) {
    CHECK(argc > 2);
    void *old = make_widget();
    make(100);
    stop();
    make(100);
    CHECK(stat("mprof.data", &status) == 0 && stat(argv[2], &status) != 0);
    restart(argv[2]);
    free(old);
    make(50);
  } else if (strcmp(argv[1], "autosave") == 0) {
    autosave(100);
    make(99);
    CHECK(stat("mprof.data", &status) == 0);
    CHECK(unlink("mprof.data") == 0);
    autosave(0);
    make(1000);
    CHECK(stat("mprof.data", &status) != 0);
    _exit(0);
  } else if (strcmp(argv[1], "fork") == 0) {
    make(10);
    pid_t child = fork();
    make(10);
    if (child != 0) CHECK(waitpid(child, NULL, 0) == child);
  } else {
    restart("never.data");
    stop();
    stop();
    static char name[5000];
    memset(name, 'x', sizeof name - 1);
    restart(name);
    restart("nowhere/at/all");
    autosave(-5);
  }
  return 0;
}
