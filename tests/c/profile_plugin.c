// A module that allocates with a frame of FRAME bytes. Without its unwind tables a walk does not find its
// caller, because it uses the frame pointer as any other register.
#include <stdlib.h>

void *plugin(size_t size)
{
  volatile char room[FRAME];
  room[0] = 1;
  void *block = malloc(size);
  room[FRAME - 1] = room[0];
  return block;
}
