/* A program whose exporter breaks: the system refuses to let it wait for connections. What the
 * exporter says is written to standard output. */
#include "api_check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_bool is_broken;

/* Takes the place of the C library's function, as the program is linked with -rdynamic. */
int epoll_wait(int file, struct epoll_event *events, int most, int timeout) {
  if (!atomic_load(&is_broken))
    return (int)syscall(SYS_epoll_pwait, file, events, most, timeout, NULL, 0);
  errno = EBADF;
  return -1;
}

int main(int count, char **words) {
  CHECK(count == 2);
  int ends[2];
  CHECK(pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
  atomic_store(&is_broken, true);
  /* Ends a wait that has begun. */
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(words[1]))};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&to, sizeof to) == 0);
  char said[4096];
  ssize_t length = read(ends[0], said, sizeof said);
  CHECK(length > 0 && fwrite(said, 1, (size_t)length, stdout) == (size_t)length);
  free(malloc(100000));
  puts("went on");
  return 0;
}
