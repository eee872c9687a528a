/* Threads allocate in the destructor of a key, in each of the two rounds that it asks for. */
#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 10, BLOCKS = 20, ROUNDS = 2 };

static pthread_key_t key;
static void *volatile kept[THREADS * BLOCKS * ROUNDS];
static int used;

__attribute__((noinline)) static void destroy(void *value) {
  char *round = value;
  for (int i = 0; i < BLOCKS; i++) kept[used++] = malloc(1000);
  if (++*round < ROUNDS) {
    pthread_setspecific(key, round);
  } else {
    free(round);
  }
}

static void *run(void *unused) {
  (void)unused;
  pthread_setspecific(key, calloc(1, 1));
  return NULL;
}

int main(void) {
  if (pthread_key_create(&key, destroy) != 0) return 1;
  for (int i = 0; i < THREADS; i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, NULL) != 0) return 1;
    pthread_join(thread, NULL);
  }
  return 0;
}
