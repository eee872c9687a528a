/* Says what realloc(p, 0) answers. With an argument, messages go to standard output. */
#include <dlfcn.h>
#include <unistd.h>
#include "api_check.h"

static void to_stdout(void *opaque_pointer, const char *text)
{
  (void)opaque_pointer;
  if (write(STDOUT_FILENO, text, strlen(text)) < 0) _exit(9);
}

int main(int argc, char **argv)
{
  void *block = malloc(100);
  (void)argv;
  if (argc > 1) {
    void (**message)(void *, const char *) = (void (**)(void *, const char *))dlsym(RTLD_DEFAULT, "malloc_message");
    CHECK(message != NULL);
    *message = to_stdout;
  }
  KEEPS_ERRNO(block = realloc(block, 0));
  puts(block == NULL ? "NULL" : "block");
  free(block);
  return 0;
}
