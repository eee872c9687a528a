/* Functions that GCC splits at -O2 into a head, which returns at once or calls the rest, and the
 * rest. Then recursion, which looks alike.
 */
#include <stdio.h>
#include <stdlib.h>

/* Not inlined, and not left by a jump. */
#define PLACE __attribute__((noinline)) static
#define END __asm__ volatile("")

struct node { struct node *next; char text[200]; };

static struct node *volatile last;
static struct node nothing;

/* The head is inlined, the rest is a function. */
struct node *outside(int length)
{
  if (length == 0) return &nothing;
  struct node *made = malloc(1000);
  for (int at = 0; at < length; at++) made->text[at % 200] = (char)(at * 7);
  snprintf(made->text, sizeof made->text, "%d-%d", length, length * 3);
  fflush(stdout);
  return last = made;
}

/* Both are inlined. */
struct node *inside(int length)
{
  if (length == 0) return &nothing;
  struct node *made = malloc(2000);
  for (int at = 0; at < length; at++) made->text[at % 200] = (char)(at * 7);
  snprintf(made->text, sizeof made->text, "%d-%d", length, length * 3);
  fflush(stdout);
  return last = made;
}

/* Recursion of a function that is split. */
struct node *list(int length)
{
  if (length == 0) return &nothing;
  struct node *made = malloc(3000);
  snprintf(made->text, sizeof made->text, "%d-%d", length, length * 3);
  made->next = list(length - 1);
  fflush(stdout);
  return last = made;
}

/* Recursion in one line, which is inlined too. */
static void tree(int depth) { last = malloc(4000); if (depth) tree(depth - 1); END; }

PLACE void outsides(int count) { outside(count); outside(count + 1); END; }
struct node *insides(int count) { return inside(count); }
PLACE void lists(int count) { list(count); END; }
PLACE void trees(int count) { tree(count); END; }

int main(int argc, char **argv)
{
  (void)argv;
  outsides(argc);
  for (int at = 0; at < 3; at++) { insides(at); inside(at * argc); }
  lists(argc + 2);
  trees(argc + 2);
  return 0;
}
