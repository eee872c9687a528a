// A module that exchanges blocks with the program that opens it.
#include <stdlib.h>
#include <string.h>

char *module_copy(const char *text) { return strdup(text); }
void module_free(void *block) { free(block); }
void *module_malloc(void) { return (void *)malloc; }
