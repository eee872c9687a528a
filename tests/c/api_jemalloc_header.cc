// <jemalloc/jemalloc.h> in C++.
#include "api_jemalloc_header.c"
