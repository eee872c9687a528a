/* A program that defines malloc_conf: the library reads the program's, however it is linked. */
#include <sys/types.h>
#include "api_check.h"

const char *malloc_conf = "dirty_decay_ms:4321";

int main(void)
{
  ssize_t milliseconds = 0;
  size_t length = sizeof milliseconds;
  CHECK(mallctl("opt.dirty_decay_ms", &milliseconds, &length, NULL, 0) == 0);
  CHECK(milliseconds == 4321);
  puts("ok");
  return 0;
}
