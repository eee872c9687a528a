/* malloc_stats_print: callback, malloc_message, standard error; text and JSON. */
#include <unistd.h>
#include "api_check.h"

static char collected[1 << 20];
static size_t used;
static void *given;

static void collect(void *opaque_pointer, const char *text)
{
  size_t length = strlen(text);
  given = opaque_pointer;
  CHECK(used + length < sizeof collected);
  memcpy(collected + used, text, length + 1);
  used += length;
}

static void start_over(void)
{
  used = 0;
  collected[0] = 0;
  given = NULL;
}

/* The number behind a key in what was collected. */
static size_t number_behind(const char *key)
{
  const char *place = strstr(collected, key);
  CHECK(place != NULL);
  return strtoull(place + strlen(key), NULL, 10);
}

static void check_balance(void)
{
  int depth = 0;
  const char *at;
  for (at = collected; *at != 0; at++) {
    if (*at == '{') depth++;
    if (*at == '}') CHECK(--depth >= 0);
  }
  CHECK(depth == 0);
}

static void to_a_callback(void)
{
  int marker;
  void *held = malloc(3000000);
#ifndef FOREIGN
  KEEPS_ERRNO(malloc_stats_print(collect, &marker, NULL));
#else
  malloc_stats_print(collect, &marker, NULL);
#endif
  CHECK(given == &marker);
  CHECK(strstr(collected, "___ Begin ") == collected);
  CHECK(strstr(collected, "--- End ") != NULL);
  CHECK(number_behind("Allocated: ") >= 3000000);
  CHECK(number_behind(", active: ") >= number_behind("Allocated: "));
  CHECK(strstr(collected, ", resident: ") && strstr(collected, ", mapped: "));
  CHECK(strstr(collected, ", retained: ") != NULL);
  free(held);
}

#ifndef FOREIGN
static size_t requests(void)
{
  uint64_t epoch = 1, count = 0;
  size_t length = sizeof count;
  CHECK(mallctl("epoch", NULL, NULL, &epoch, sizeof epoch) == 0);
  CHECK(mallctl("stats.thread_caches.requests", &count, &length, NULL, 0) == 0);
  return count;
}
#endif

/* Printing allocates nothing. */
static void without_allocating(void)
{
#ifndef FOREIGN
  static const char *const letters[] = {"", "J", "g", "xe"};
  size_t at, before;
  requests();
  before = requests();
  for (at = 0; at < 4; at++) {
    start_over();
    malloc_stats_print(collect, NULL, letters[at]);
  }
  CHECK(requests() == before);
  free(malloc(10));
  CHECK(requests() == before + 1);
#endif
}

static void as_json(void)
{
  size_t allocated, length = sizeof allocated;
  start_over();
  malloc_stats_print(collect, NULL, "J");
  check_balance();
  CHECK(strstr(collected, "\"jemalloc\"") && strstr(collected, "\"version\""));
  CHECK(strstr(collected, "\"arenas\"") && strstr(collected, "\"narenas\""));
  CHECK(strstr(collected, "\"stats\"") && strstr(collected, "\"opt\""));
#ifndef FOREIGN /* jemalloc puts blanks in */
  CHECK(strncmp(collected, "{\"jemalloc\":{\"version\":\"", 23) == 0);
  CHECK(mallctl("stats.allocated", &allocated, &length, NULL, 0) == 0);
  CHECK(number_behind("\"stats\":{\"allocated\":") == allocated);
  start_over();
  malloc_stats_print(collect, NULL, "Jg");
  check_balance();
  CHECK(strncmp(collected, "{\"jemalloc\":{\"stats\":{", 22) == 0);
#else
  (void)allocated;
  (void)length;
#endif
}

static void to_malloc_message(void)
{
  int marker;
  start_over();
  malloc_message = collect;
  malloc_stats_print(NULL, &marker, "g");
  CHECK(given == &marker && strstr(collected, "Allocated: ") != NULL);
#ifndef FOREIGN
  start_over();
  malloc_stats();
  CHECK(strstr(collected, "Allocated: ") != NULL);
#endif
  malloc_message = NULL;
}

static void to_standard_error(void)
{
#ifndef FOREIGN /* jemalloc restores malloc_message only at start */
  int ends[2], saved = dup(2);
  ssize_t length;
  start_over();
  CHECK(pipe(ends) == 0 && dup2(ends[1], 2) == 2);
  malloc_stats_print(NULL, NULL, "");
  CHECK(dup2(saved, 2) == 2 && close(ends[1]) == 0);
  while ((length = read(ends[0], collected + used, sizeof collected - used - 1)) > 0)
    used += (size_t)length;
  collected[used] = 0;
  CHECK(strstr(collected, "Allocated: ") != NULL && strstr(collected, "--- End ") != NULL);
#endif
}

int main(void)
{
  to_a_callback();
  as_json();
  without_allocating();
  to_malloc_message();
  to_standard_error();
  puts("ok");
  return 0;
}
