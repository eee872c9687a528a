/* A thread with a small stack allocates: profile_small_stack KIBIBYTES. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *allocate(void *unused) {
  for (int i = 0; i < 2000; i++) {
    void *block = malloc(3000);
    memset(block, 1, 3000);
    if (i % 2 == 1) free(block);
  }
  return unused;
}

int main(int count, char **arguments) {
  if (count != 2) return 2;
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  /* Some machines refuse so little, and the stack has the usual size. */
  pthread_attr_setstacksize(&attributes, strtoul(arguments[1], NULL, 10) << 10);
  if (pthread_create(&thread, &attributes, allocate, NULL) != 0) return 1;
  pthread_join(thread, NULL);
  puts("ended");
  return 0;
}
