/* Closes standard error before it ends, as argv[1] says:
 *   handler   in a handler of exit, as the programs of coreutils do
 *   taken     and every number up to 1023 is the file argv[2] then
 *   message   and messages go to standard output
 * or, with count, tells how many descriptors above 2 there are: here, in a child, and after exec. */
#include "api_check.h"
#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

static void close_stderr(void)
{
  CHECK(fclose(stderr) == 0);
}

static void to_stdout(void *opaque, const char *text)
{
  (void)opaque;
  if (write(1, text, strlen(text)) < 0)
    abort();
}

/* Of numbers that others had, a child has them all still. */
static void take_all_numbers(const char *path)
{
  int number, status, file = open(path, O_WRONLY | O_CLOEXEC);
  pid_t child;
  CHECK(file >= 0);
  close(2);
  for (number = 3; number < 1024; number++)
    CHECK(number == file || dup3(file, number, O_CLOEXEC) == number);
  child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    for (number = 3; number < 1024; number++)
      CHECK(fcntl(number, F_GETFD) == FD_CLOEXEC);
    exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* Without the one that the question takes. */
static int others(void)
{
  struct dirent *entry;
  int count = -1;
  DIR *directory = opendir("/proc/self/fd");
  CHECK(directory != NULL);
  while ((entry = readdir(directory)) != NULL)
    count += entry->d_name[0] != '.' && atoi(entry->d_name) > 2;
  closedir(directory);
  return count;
}

static void count_all(char **argv)
{
  int status, here = others();
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0)
    _exit(others());
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
  printf("%d %d ", here, WEXITSTATUS(status));
  fflush(stdout);
  unsetenv("LUMALLOC_CONF");
  argv[1] = (char *)"count_here";
  execv(argv[0], argv);
  abort();
}

int main(int argc, char **argv)
{
  CHECK(argc >= 2);
  if (strcmp(argv[1], "handler") == 0) {
    CHECK(atexit(close_stderr) == 0);
  } else if (strcmp(argv[1], "taken") == 0) {
    CHECK(argc == 3);
    take_all_numbers(argv[2]);
  } else if (strcmp(argv[1], "message") == 0) {
    malloc_message = to_stdout;
    close_stderr();
  } else if (strcmp(argv[1], "count") == 0) {
    count_all(argv);
  } else {
    printf("%d\n", others());
  }
  return 0;
}
