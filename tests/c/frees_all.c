/* Writes a line that is not sent before the exit, and frees all that it has allocated. */
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
  void *block = malloc(100);
  __asm__ volatile("" : : "r"(block) : "memory");
  free(block);
  printf("freed\n");
  return 0;
}
