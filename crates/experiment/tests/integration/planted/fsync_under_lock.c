/*
 * A log: every transaction appends to a file and syncs it, under one mutex, `planted_log_mutex`. All threads wait for the disk,
 * most of them through the mutex, while the CPUs idle. Nobody's sync serves the others.
 */
#include "stage.h"

pthread_mutex_t planted_log_mutex = PTHREAD_MUTEX_INITIALIZER;
static int log_file;

static OUT_OF_LINE void write_the_log(struct worker *me)
{
	long before = now();

	pthread_mutex_lock(&planted_log_mutex);
	me->lost += now() - before;
	/* The same place again: no blocks to be found, only the data and a flush of the disk. */
	if (pwrite(log_file, &me->sum, sizeof(me->sum), 0) != sizeof(me->sum) || fdatasync(log_file))
		exit(5);
	pthread_mutex_unlock(&planted_log_mutex);
	__asm__ volatile("");
}

static OUT_OF_LINE void transaction(struct worker *me)
{
	me->sum = compute(me->sum, 50000);
	write_the_log(me);
}

int main(int count, char **arguments)
{
	char name[4096];

	if (count != 3)
		return 2;
	snprintf(name, sizeof(name), "%s/log", arguments[2]);
	log_file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (log_file < 0)
		return 5;
	return stage(count, arguments, CLOCK_MONOTONIC);
}
