// A library with a RUNPATH of its own: the loader must find by it what the library opens by name.
#include <dlfcn.h>

void *opener_open(const char *how) {
  if (how[0] == 'm') {
    return dlmopen(LM_ID_BASE, "libdeepbindmodule.so", RTLD_NOW | RTLD_DEEPBIND);
  }
  return dlopen("libdeepbindmodule.so", RTLD_NOW | RTLD_DEEPBIND);
}
