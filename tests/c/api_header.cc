// The header in C++: every declaration agrees with those of <cstdlib> and <malloc.h> about
// exceptions.
#include "api_header.c"
