// A library that uses ours: a block, and the version.
#include <lumalloc.h>
#include <string.h>

const char *artefact_version(void) {
  static char version[64];
  const char *said = NULL;
  size_t size = sizeof said;
  char *block = mallocx(sizeof version, 0);
  if (block == NULL || mallctl("version", &said, &size, NULL, 0) != 0) {
    return "none";
  }
  strncpy(block, said, sizeof version - 1);
  memcpy(version, block, sizeof version - 1);
  dallocx(block, 0);
  return version;
}
