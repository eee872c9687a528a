/* Says what realloc(p, 0) answers. */
#include "api_check.h"

int main(void)
{
  void *block = malloc(100);
  KEEPS_ERRNO(block = realloc(block, 0));
  puts(block == NULL ? "NULL" : "block");
  free(block);
  return 0;
}
