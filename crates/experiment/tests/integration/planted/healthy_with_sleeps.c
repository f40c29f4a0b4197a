/*
 * Nothing is planted: threads compute and sleep by turns and share nothing. CPUs idle, and nothing is to blame for it.
 */
#include "stage.h"

static OUT_OF_LINE void think(void)
{
	struct timespec t = {0, 4000000};

	nanosleep(&t, 0);
	__asm__ volatile("");
}

static OUT_OF_LINE void transaction(struct worker *me)
{
	me->sum = compute(me->sum, 100000);
	think();
}

int main(int count, char **arguments)
{
	return stage(count, arguments, NO_CLOCK);
}
