/* The example of the paper on mprof, written anew: two producers make 10000 widgets, and the consumer
 * forgets to free the red ones. The paper's producers are chosen by a random number, of which 5019
 * were red; here a fixed choice makes the same numbers.
 */
#include <stdlib.h>

/* Not inlined, and not left by a jump. */
#define PLACE __attribute__((noinline)) static
#define END __asm__ volatile("")

enum { WIDGETS = 10000, RED = 5019 };

enum color { COLOR_BLUE, COLOR_RED };

typedef struct {
  enum color color;
  int data[50];
} widget;

static widget *queue[WIDGETS];

PLACE widget *make_widget(void)
{
  widget *made = malloc(sizeof *made);
  END;
  return made;
}

PLACE widget *make_blue_widget(void)
{
  widget *made = make_widget();
  made->color = COLOR_BLUE;
  END;
  return made;
}

PLACE widget *make_red_widget(void)
{
  widget *made = make_widget();
  made->color = COLOR_RED;
  END;
  return made;
}

PLACE void consume_widget(widget *taken)
{
  if (taken->color == COLOR_BLUE) free(taken);
  END;
}

/* Whether the widget of this number is red: RED of them, spread evenly. */
static int is_red(int number)
{
  return (number + 1) * RED / WIDGETS > number * RED / WIDGETS;
}

int main(void)
{
  for (int i = 0; i < WIDGETS; i++)
    queue[i] = is_red(i) ? make_red_widget() : make_blue_widget();
  for (int i = 0; i < WIDGETS; i++)
    consume_widget(queue[i]);
  return 0;
}
