/*
 * A convoy: most of a transaction is done under one mutex, `planted_mutex`, so that all but one thread sleep for it while CPUs
 * idle.
 */
#include "stage.h"

pthread_mutex_t planted_mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long table[1024];

static OUT_OF_LINE void change_the_table(struct worker *me)
{
	long before = now();

	pthread_mutex_lock(&planted_mutex);
	me->lost += now() - before;
	table[me->sum % 1024] = compute(me->sum, 200000);
	pthread_mutex_unlock(&planted_mutex);
	__asm__ volatile("");
}

static OUT_OF_LINE void transaction(struct worker *me)
{
	me->sum = compute(me->sum, 20000);
	change_the_table(me);
}

int main(int count, char **arguments)
{
	return stage(count, arguments, CLOCK_MONOTONIC);
}
