// Opens a module with RTLD_DEEPBIND and says whose malloc the module uses. With the same malloc
// blocks are allocated on one side and freed on the other.
//   deepbind_program open|mopen|new MODULE...
// new: each module in a namespace of its own. With -DOPENER a library opens the one module.
#include "api_check.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef OPENER
void *opener_open(const char *how);
#endif

static void *open_module(const char *how, const char *module) {
#ifdef OPENER
  (void)module;
  return opener_open(how);
#else
  int flags = RTLD_NOW | RTLD_DEEPBIND;
  if (strcmp(how, "open") == 0) {
    return dlopen(module, flags);
  }
  return dlmopen(strcmp(how, "mopen") == 0 ? LM_ID_BASE : LM_ID_NEWLM, module, flags);
#endif
}

static void use(const char *how, const char *module) {
  void *handle = open_module(how, module);
  if (handle == NULL) {
    printf("%s\n", dlerror());
    exit(1);
  }
  char *(*copy)(const char *) = (char *(*)(const char *))dlsym(handle, "module_copy");
  void (*release)(void *) = (void (*)(void *))dlsym(handle, "module_free");
  void *(*their_malloc)(void) = (void *(*)(void))dlsym(handle, "module_malloc");
  CHECK(copy != NULL && release != NULL && their_malloc != NULL);
  if (their_malloc() != dlsym(RTLD_DEFAULT, "malloc")) {
    // A block of strdup may be the program's: then even the module itself must not free it.
    puts("its own malloc");
    return;
  }
  for (int i = 0; i < 1000; i++) {
    char *theirs = copy("text");
    CHECK(strcmp(theirs, "text") == 0);
    free(theirs);
    release(malloc((size_t)i));
  }
  puts("the same malloc");
}

int main(int argc, char **argv) {
  CHECK(argc > 2);
  for (int i = 2; i < argc; i++) {
    use(argv[1], argv[i]);
  }
  return 0;
}
