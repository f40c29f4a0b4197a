/*
 * Nothing is planted: threads compute, share nothing, and leave no CPU idle.
 */
#include "stage.h"

static OUT_OF_LINE unsigned long parse(unsigned long sum)
{
	return compute(sum, 30000);
}

static OUT_OF_LINE unsigned long look_up(unsigned long sum)
{
	return compute(sum, 70000);
}

static OUT_OF_LINE void transaction(struct worker *me)
{
	me->sum = look_up(parse(me->sum));
}

int main(int count, char **arguments)
{
	return stage(count, arguments, NO_CLOCK);
}
