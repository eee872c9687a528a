/* What the programs api_* share. CHECK ends the program with a line that says where. */
#ifndef API_CHECK_H_
#define API_CHECK_H_

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lumalloc.h"

#define CHECK(condition) \
  ((condition) ? (void)0 : check_failed(__FILE__, __LINE__, #condition))

static inline void check_failed(const char *file, int line, const char *condition)
{
  fprintf(stderr, "%s:%d: not so: %s\n", file, line, condition);
  _Exit(1);
}

/* Runs a statement and checks that it left errno alone. */
#define KEEPS_ERRNO(statement) \
  do { errno = 12345; statement; CHECK(errno == 12345); } while (0)

/* Runs a call that must answer NULL and set errno. */
#define FAILS_WITH(code, call) \
  do { errno = 0; CHECK((call) == NULL); CHECK(errno == (code)); } while (0)

static inline int is_aligned(const void *ptr, size_t alignment)
{
  return (uintptr_t)ptr % alignment == 0;
}

/* A pattern that depends on the place, so that moved or overlapping contents are noticed. */
static inline unsigned char pattern(size_t at, unsigned seed)
{
  return (unsigned char)(at * 31 + at / 251 + seed * 7 + 1);
}

static inline void fill(void *ptr, size_t size, unsigned seed)
{
  size_t at;
  for (at = 0; at < size; at++) ((unsigned char *)ptr)[at] = pattern(at, seed);
}

static inline int is_filled(const void *ptr, size_t size, unsigned seed)
{
  size_t at;
  for (at = 0; at < size; at++)
    if (((const unsigned char *)ptr)[at] != pattern(at, seed)) return 0;
  return 1;
}

static inline int is_zero(const void *ptr, size_t size)
{
  const unsigned char *bytes = (const unsigned char *)ptr;
  return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

/* Hides a value from the compiler, which warns of sizes that are too large. */
static inline size_t opaque(size_t value)
{
  volatile size_t hidden = value;
  return hidden;
}

#endif
