/* A C program that calls operator new for more than there is: there is nothing to throw with. */
#include "api_check.h"

void *_Znwm(size_t size) __attribute__((__weak__));

int main(void)
{
  CHECK(_Znwm != NULL);
  free(_Znwm(10));
  _Znwm(opaque(PTRDIFF_MAX));
  return 0;
}
