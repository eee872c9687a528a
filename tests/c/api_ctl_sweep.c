/* Every key by the C interface, told by the namespace itself: reads at its type by name and by MIB,
   refuses other lengths and what its access forbids. Another library has no names to tell. */
#include <stdbool.h>
#include <sys/types.h>
#include "api_check.h"

#ifndef FOREIGN
static const char *ask(const char *about, const char *name)
{
  const char *answer = NULL;
  size_t length = sizeof answer;
  KEEPS_ERRNO(CHECK(mallctl(about, &answer, &length, &name, sizeof name) == 0));
  CHECK(length == sizeof answer && answer != NULL && answer[0] != '\0');
  return answer;
}

static size_t size_of(const char *type)
{
  static const struct {
    const char *name;
    size_t size;
  } TYPES[] = {{"bool", sizeof(bool)},         {"unsigned", sizeof(unsigned)},
               {"uint32_t", sizeof(uint32_t)}, {"uint64_t", sizeof(uint64_t)},
               {"int64_t", sizeof(int64_t)},   {"size_t", sizeof(size_t)},
               {"ssize_t", sizeof(ssize_t)}};
  size_t at, length = strlen(type);
  for (at = 0; at < sizeof TYPES / sizeof TYPES[0]; at++)
    if (strcmp(TYPES[at].name, type) == 0) return TYPES[at].size;
  return length != 0 && type[length - 1] == '*' ? sizeof(void *) : 0;
}

/* The name with 0 for each index. */
static void make_concrete(char *concrete, const char *name)
{
  for (; *name != '\0'; name++) {
    if (*name == '<') {
      *concrete++ = '0';
      while (*name != '>') name++;
    } else {
      *concrete++ = *name;
    }
  }
  *concrete = '\0';
}

static void by_mib(const char *name, const unsigned char *expected, size_t size, int code)
{
  size_t mib[8], depth = 8, length = size;
  unsigned char bytes[16] = {0};
  CHECK(mallctlnametomib(name, mib, &depth) == 0);
  CHECK(mallctlbymib(mib, depth, bytes, &length, NULL, 0) == code);
  if (code == 0 && strncmp(name, "opt.", 4) == 0) CHECK(memcmp(bytes, expected, size) == 0);
  CHECK(mallctlbymib(mib, depth - 1, bytes, &length, NULL, 0) == ENOENT);
  mib[depth] = 0;
  if (depth < 8) CHECK(mallctlbymib(mib, depth + 1, bytes, &length, NULL, 0) == ENOENT);
}

static void reads(const char *name, size_t size, const char *access)
{
  unsigned char bytes[16];
  size_t length = size;
  int code;
  memset(bytes, 0xee, sizeof bytes);
  code = mallctl(name, bytes, &length, NULL, 0);
  if (access[0] == 'r' && (code == 0 || code == ENOENT)) {
    by_mib(name, bytes, size, code);
    if (code == 0) {
      /* What makes something makes nothing without a place of its size. */
      size_t copied = strstr(name, "create") != NULL ? 0 : size;
      CHECK(length == size && bytes[size] == 0xee);
      length = size + 1;
      CHECK(mallctl(name, bytes, &length, NULL, 0) == EINVAL && length == copied);
      length = 0;
      CHECK(mallctl(name, bytes, &length, NULL, 0) == EINVAL && length == 0);
    }
  } else if (access[0] == 'r') { /* asks for an input */
    CHECK(access[1] == 'w' && code == EINVAL);
  } else {
    CHECK(code == EPERM || code == ENOENT);
  }
}

static void sweep(void)
{
  const char *names = NULL, *end;
  size_t length = sizeof names, count = 0;
  CHECK(mallctl("ctl.names", &names, &length, NULL, 0) == 0 && names != NULL);
  for (; (end = strchr(names, '\n')) != NULL; names = end + 1) {
    char name[128], concrete[128];
    const char *access, *type;
    size_t size;
    CHECK((size_t)(end - names) < sizeof name);
    memcpy(name, names, (size_t)(end - names));
    name[end - names] = '\0';
    make_concrete(concrete, name);
    type = ask("ctl.type", name);
    access = ask("ctl.access", name);
    CHECK(strcmp(ask("ctl.help", concrete), ask("ctl.help", name)) == 0);
    ask("ctl.unit", name);
    ask("ctl.input", name);
    ask("ctl.stability", name);
    size = size_of(type);
    /* What creates arenas would make some; and char * is the other way round: the caller's buffer
     * has the place for the text. */
    if (size != 0 && strstr(name, "arenas_create") == NULL && strstr(name, "arenas.create") == NULL
        && strcmp(type, "char *") != 0) {
      reads(concrete, size, access);
    }
    if (strcmp(access, "r-") == 0) {
      int code = mallctl(concrete, NULL, NULL, name, 3);
      CHECK(code == EPERM || code == ENOENT);
    }
    count++;
  }
  CHECK(*names == '\0' && count > 150);
}

static void wrong_questions(void)
{
  const char *answer = NULL, *nothing = "nothing.of.the.kind", *null = NULL;
  size_t length = sizeof answer;
  CHECK(mallctl("ctl.help", &answer, &length, NULL, 0) == EINVAL);
  CHECK(mallctl("ctl.help", &answer, &length, &null, sizeof null) == EINVAL);
  CHECK(mallctl("ctl.help", &answer, &length, &nothing, 4) == EINVAL);
  CHECK(mallctl("ctl.help", &answer, &length, &nothing, sizeof nothing) == ENOENT);
  CHECK(answer == NULL && length == sizeof answer);
}
#endif

int main(void)
{
#ifndef FOREIGN
  sweep();
  wrong_questions();
#endif
  puts("ok");
  return 0;
}
