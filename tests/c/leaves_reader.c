/* Returns from main while a thread waits for input from a pipe by a stream that it has locked, and while a line to
 * standard output and one to the file argv[1] are not sent yet. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

static FILE *input;
static sem_t is_locked;

static void *reads(void *unused)
{
  char line[100];
  (void)unused;
  flockfile(input);
  sem_post(&is_locked);
  return fgets(line, sizeof line, input);
}

int main(int argc, char **argv)
{
  int ends[2];
  pthread_t thread;
  if (argc != 2 || pipe(ends) != 0 || sem_init(&is_locked, 0, 0) != 0) return 2;
  FILE *file = fopen(argv[1], "w");
  input = fdopen(ends[0], "r");
  if (file == NULL || input == NULL) return 3;
  if (pthread_create(&thread, NULL, reads, NULL) != 0 || sem_wait(&is_locked) != 0) return 4;
  fputs("a line of another stream\n", file);
  puts("main returns");
  return 0;
}
