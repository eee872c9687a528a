/* What the death tests share: pointers that the compiler cannot see through, and an end that the
 * test tells from a death. */
#ifndef DEATH_COMMON_H
#define DEATH_COMMON_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The same pointer; the compiler forgets where it came from. */
__attribute__((noinline, unused)) static void *opaque(void *pointer) {
    __asm__ volatile("" : "+r"(pointer) : : "memory");
    return pointer;
}

/* A way to give a block back, by the name in argv. */
__attribute__((unused)) static void give_back(const char *door, void *pointer) {
    if (strcmp(door, "free") == 0) {
        free(pointer);
    } else if (strcmp(door, "realloc") == 0) {
        if (realloc(pointer, 100000) == NULL) _exit(9);
    } else {
        _exit(8);
    }
}

/* The crime went unnoticed. */
__attribute__((noreturn, unused)) static void survived(void) { _exit(42); }

#endif
