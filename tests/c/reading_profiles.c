/* A parser whose functions call each other, and allocate known numbers of blocks. Of 300 widgets
 * 100 are not freed.
 */
#include <stdlib.h>

/* Not inlined, and not left by a jump. */
#define PLACE __attribute__((noinline)) static
#define END __asm__ volatile("")

typedef struct { char bytes[204]; } widget;
struct token { struct token *next; char text[16]; };

static void *volatile last;

PLACE void *make_widget(void) { widget *made = malloc(sizeof *made); END; return made; }
PLACE void *make_red_widget(void) { void *made = make_widget(); END; return made; }
PLACE void intern(void) { last = malloc(17); END; free(last); }
PLACE void expr(int depth);
PLACE void term(int depth)
{
  if (depth > 0) expr(depth - 1); else intern();
  END;
}
PLACE void expr(int depth)
{
  if (depth == 1) last = malloc(sizeof(struct token));
  term(depth);
  END;
}
PLACE void parse(void) { expr(1); END; }
PLACE void grow(int depth)
{
  if (depth > 0) grow(depth - 1); else last = malloc(5000);
  END;
}

int main(void)
{
  for (int i = 0; i < 300; i++) {
    void *made = make_red_widget();
    if (i % 3) free(made);
  }
  for (int i = 0; i < 100; i++) parse();
  grow(2);
  return 0;
}
