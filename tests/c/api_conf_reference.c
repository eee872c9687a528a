/* A program that refers to malloc_conf and malloc_message: the library's own are there, NULL. */
#include "api_check.h"

int main(void)
{
  free(malloc(1));
  CHECK(&malloc_conf != NULL && malloc_conf == NULL);
#ifndef FOREIGN
  CHECK(malloc_message == NULL);
#endif
  puts("ok");
  return 0;
}
