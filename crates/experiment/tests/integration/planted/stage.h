/*
 * What the planted programs have in common. Worker threads do transactions in a closed loop, and each counts its own.
 *
 *   PROGRAM COUNTERS FOLDER
 *
 * COUNTERS is a file that is mapped: worker w counts at byte 128 w, so that whoever reads the file sees the counts of that
 * moment, and no two workers share a cache line for it. FOLDER is for files of the program's own.
 *
 * It says `ready` and listens: `start N` begins N workers and answers with `workers` and their thread numbers; `stop` ends them
 * and answers with `truth`, the nanoseconds that they lost to what is planted and those that they had, both as they measured them
 * themselves, or 0 and 0 where only a comparison of two rungs can tell. The end of its input ends the program.
 */
#ifndef STAGE_H
#define STAGE_H

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define OUT_OF_LINE __attribute__((noinline, noclone))
#define MOST_WORKERS 64
/* Nothing that a thread could measure of itself. */
#define NO_CLOCK ((clockid_t)-1)

/* What one worker may use without sharing a cache line with another. */
struct worker {
	_Alignas(128) long lost;
	long lived;
	unsigned long sum;
	int number;
	atomic_int thread;
	pthread_t handle;
};

/* The disease, of which every program has its own. */
static void transaction(struct worker *me);

static struct worker workers[MOST_WORKERS];
static _Alignas(128) atomic_int over;
static char *counters;
/* What workers measure themselves with: time that passes, or time on a CPU. */
static clockid_t own_clock;

static inline long now(void)
{
	struct timespec t;

	if (clock_gettime(own_clock, &t))
		return 0;
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

/* Work that touches nothing but registers: about 1 ns a turn on most machines. */
static OUT_OF_LINE unsigned long compute(unsigned long sum, long turns)
{
	for (long turn = 0; turn < turns; turn++)
		sum = sum * 6364136223846793005UL + 1442695040888963407UL;
	return sum;
}

static void *serve(void *mine)
{
	struct worker *me = mine;
	atomic_long *count = (atomic_long *)(counters + 128 * me->number);

	atomic_store(&me->thread, gettid());
	me->lived = -now();
	while (!atomic_load_explicit(&over, memory_order_relaxed)) {
		transaction(me);
		atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1, memory_order_relaxed);
	}
	me->lived += now();
	return 0;
}

static void start(int count)
{
	over = 0;
	for (int number = 0; number < count; number++) {
		workers[number] = (struct worker){.number = number};
		if (pthread_create(&workers[number].handle, 0, serve, &workers[number]))
			exit(3);
	}
	printf("workers");
	for (int number = 0; number < count; number++) {
		while (!workers[number].thread)
			usleep(100);
		printf(" %d", workers[number].thread);
	}
	puts("");
	fflush(stdout);
}

static void stop(int count)
{
	long lost = 0, lived = 0;

	over = 1;
	for (int number = 0; number < count; number++) {
		pthread_join(workers[number].handle, 0);
		lost += workers[number].lost;
		lived += workers[number].lived;
	}
	printf("truth %ld %ld\n", lost, lived);
	fflush(stdout);
}

static int stage(int argument_count, char **arguments, clockid_t clock)
{
	char line[64];
	int count = 0;

	if (argument_count != 3)
		return 2;
	int file = open(arguments[1], O_RDWR | O_CREAT, 0600);

	if (file < 0 || ftruncate(file, 128 * MOST_WORKERS))
		return 4;
	counters = mmap(0, 128 * MOST_WORKERS, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (counters == MAP_FAILED)
		return 4;
	own_clock = clock;
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (!strncmp(line, "start ", 6)) {
			count = atoi(line + 6);
			if (count < 1 || count > MOST_WORKERS)
				return 2;
			start(count);
		} else if (!strcmp(line, "stop\n")) {
			stop(count);
		}
	}
	return 0;
}

#endif
