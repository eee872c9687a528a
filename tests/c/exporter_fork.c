/* A program that is told to serve: it forks, counts its threads, closes what it did not open, ends
 * its first thread, or uses up all memory. */
#include "api_check.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int threads(void) {
  DIR *tasks = opendir("/proc/self/task");
  int count = 0;
  struct dirent *task;
  while ((task = readdir(tasks)) != NULL)
    count += task->d_name[0] != '.';
  closedir(tasks);
  return count;
}

/* Whether somebody answers there within a second. */
static int answers(int port) {
  static const char request[] = "GET /-/healthy HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int file = socket(AF_INET, SOCK_STREAM, 0);
  char answer[16] = "";
  int is_there = connect(file, (struct sockaddr *)&to, sizeof to) == 0 &&
                 write(file, request, sizeof request - 1) > 0;
  struct pollfd readable = {.fd = file, .events = POLLIN};
  is_there = is_there && poll(&readable, 1, 10000) == 1 && read(file, answer, sizeof answer - 1) > 0;
  close(file);
  return is_there && strncmp(answer, "HTTP/1.1 200", 12) == 0;
}

static void say(const char *who, int serves) {
  printf("%s %s\n", who, serves ? "serves" : "serves not");
  fflush(stdout);
}

/* Blocks until there is no memory for one more, under a bound a little above what is held. */
static void use_all(void) {
  int (*ctl)(const char *, void *, size_t *, void *, size_t) = NULL;
  *(void **)&ctl = dlsym(RTLD_DEFAULT, "mallctl");
  size_t held = 0, length = sizeof held;
  CHECK(ctl != NULL && ctl("limit.held", &held, &length, NULL, 0) == 0);
  held += 16 << 20;
  CHECK(ctl("limit.hard", NULL, NULL, &held, sizeof held) == 0);
  size_t blocks = 0;
  for (size_t size = 1 << 20; size >= 16; size /= 2)
    for (char *block; (block = malloc(size)) != NULL; blocks++)
      *block = 1;
  CHECK(blocks > 0 && malloc(16) == NULL);
}

static void *last(void *unused) {
  (void)unused;
  usleep(100000);
  puts("last");
  return NULL;
}

/* The program's descriptors are its own: it has the lowest numbers, closes all, and takes them
 * for its own files, while the exporter serves on. */
static void close_all(int port) {
  printf("the first is %d\n", dup(STDOUT_FILENO));
  for (int file = 3; file < 1024; file++)
    close(file);
  say("closed", answers(port));
  FILE *own[16];
  for (int i = 0; i < 16; i++) {
    own[i] = tmpfile();
    CHECK(own[i] != NULL && fileno(own[i]) == 3 + i);
  }
  for (int i = 0; i < 20; i++)
    CHECK(answers(port));
  for (int i = 0; i < 16; i++)
    CHECK(fseek(own[i], 0, SEEK_END) == 0 && ftell(own[i]) == 0 && fclose(own[i]) == 0);
  puts("nothing was written to the program's files");
}

int main(int count, char **words) {
  int port = count > 2 ? atoi(words[2]) : 0;
  if (strcmp(words[1], "threads") == 0) {
    printf("%d threads\n", threads());
  } else if (strcmp(words[1], "exit") == 0) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, last, NULL) == 0);
    puts("first");
    pthread_exit(NULL);
  } else if (strcmp(words[1], "fork") == 0) {
    say("parent", answers(port));
    pid_t child = fork();
    if (child == 0) {
      /* The child has one thread, and allocates as ever. */
      free(malloc(100000));
      say("child", threads() > 1);
      _exit(0);
    }
    waitpid(child, NULL, 0);
    say("parent", answers(port));
  } else if (strcmp(words[1], "first") == 0) {
    printf("%d\n", dup(STDOUT_FILENO));
  } else if (strcmp(words[1], "memory") == 0) {
    say("first", answers(port));
    use_all();
    say("without memory", answers(port));
  } else {
    close_all(port);
  }
  return 0;
}
