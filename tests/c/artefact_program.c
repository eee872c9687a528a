// Uses the library's own names; with -DTHROUGH by way of a library that was linked with ours.
#include <lumalloc.h>
#include <stdio.h>
#include <string.h>

#ifdef THROUGH
const char *artefact_version(void);
#else
#include "artefact_library.c"
#endif

int main(void) {
  const char *version = artefact_version();
  if (strcmp(version, LUMALLOC_VERSION) != 0) {
    printf("version %s, and the header's is %s\n", version, LUMALLOC_VERSION);
    return 1;
  }
  puts("ok");
  return 0;
}
