// vmalloc.h in C++: its declarations agree with those of <cstdlib>, and with -DVMFL its macros let the
// standard headers and std::malloc compile.
#include "region_header.c"

#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

// Initialised before main: a position outside functions.
void *check_global = std::malloc(10);

void check_std()
{
  check_global = std::realloc(check_global, 20);
  std::free(check_global);
  std::free(NULL);
  ::free(::malloc(1));
}
