/* A program that defines malloc_conf_2_conf_harder: it is read last, after the environment.
 * With LUMALLOC_CONF, which sets both options, only the other one is the environment's. */
#include <sys/types.h>
#include "api_check.h"

const char *malloc_conf = "dirty_decay_ms:1111,muzzy_decay_ms:2222";
const char *malloc_conf_2_conf_harder = "dirty_decay_ms:3333";

static ssize_t option(const char *name)
{
  ssize_t milliseconds = 0;
  size_t length = sizeof milliseconds;
  CHECK(mallctl(name, &milliseconds, &length, NULL, 0) == 0);
  return milliseconds;
}

int main(void)
{
  CHECK(option("opt.dirty_decay_ms") == 3333);
  CHECK(option("opt.muzzy_decay_ms") == (getenv("LUMALLOC_CONF") != NULL ? 4444 : 2222));
  puts("ok");
  return 0;
}
