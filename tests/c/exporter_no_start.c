/* Preloaded before the exporter: a C library in which no function is found by its name. */
#include <stddef.h>

void *dlsym(void *library, const char *name) {
  (void)library;
  (void)name;
  return NULL;
}
