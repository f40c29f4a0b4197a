/*
 * False sharing: `planted_setting`, which is read all the time and never written, lies in one cache line with
 * `planted_statistic`, which every thread writes now and then and nobody reads. No thread waits for anything.
 */
#include "stage.h"

/* In one section and aligned, so that they are neighbours whatever the linker does with other variables. */
#define SIDE_BY_SIDE __attribute__((section(".planted"), used))
SIDE_BY_SIDE _Alignas(64) volatile long planted_setting[2] = {1, 3};
SIDE_BY_SIDE volatile unsigned long planted_statistic = 1;

static OUT_OF_LINE unsigned long look_it_up(unsigned long sum)
{
	/* Which one depends on what was read before, so that the CPU cannot run ahead of the load. */
	return sum * 6364136223846793005UL + planted_setting[sum >> 63];
}

static OUT_OF_LINE void count_it(unsigned long sum)
{
	planted_statistic = sum;
}

static OUT_OF_LINE void transaction(struct worker *me)
{
	unsigned long sum = me->sum;

	/* Enough between two stores that none waits for the one before it: only the loads are to be slow. */
	for (int row = 0; row < 1500; row++) {
		sum = look_it_up(sum);
		sum = compute(sum, 8);
		count_it(sum);
		sum = compute(sum, 8);
	}
	me->sum = sum;
}

int main(int count, char **arguments)
{
	return stage(count, arguments, NO_CLOCK);
}
