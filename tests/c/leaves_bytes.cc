// Writes a line that is not sent before the exit, and leaves argv[1] bytes allocated.
#include <cstdio>
#include <cstdlib>
#include <iostream>

int main(int argc, char **argv)
{
  if (argc != 2) return 2;
  std::cout << "from C++\n";
  printf("from C\n");
  size_t left = strtoul(argv[1], nullptr, 10);
  void *block = left ? malloc(left) : nullptr;
  __asm__ volatile("" : : "r"(block) : "memory");
  return 0;
}
