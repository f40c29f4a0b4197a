/*
 * False sharing: `planted_setting`, which is read all the time and never written, lies in one cache line with
 * `planted_statistic`, which every thread writes now and then and nobody reads. No thread waits for anything.
 */
#include "stage.h"

/* In one section and aligned, so that they are neighbours whatever the linker does with other variables. */
#define SIDE_BY_SIDE __attribute__((section(".planted"), used))
SIDE_BY_SIDE _Alignas(64) volatile long planted_setting[2] = {1, 3};
SIDE_BY_SIDE volatile unsigned long planted_statistic = 1;

static inline unsigned long mixed(unsigned long sum)
{
	for (int turn = 0; turn < 8; turn++)
		sum = sum * 6364136223846793005UL + 1442695040888963407UL;
	return sum;
}

/* Which setting is read depends on what was read before, so that the CPU cannot run ahead of the load. */
static OUT_OF_LINE unsigned long look_it_up(unsigned long sum)
{
	for (int row = 0; row < 1500; row++) {
		sum = mixed(sum + planted_setting[sum >> 63]);
		planted_statistic = sum;
		sum = mixed(sum);
	}
	return sum;
}

static OUT_OF_LINE void transaction(struct worker *me)
{
	me->sum = look_it_up(compute(me->sum, 3000));
}

int main(int count, char **arguments)
{
	return stage(count, arguments, NO_CLOCK);
}
