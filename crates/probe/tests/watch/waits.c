/*
 * Threads whose waits are known. Prints, at the end, the nanoseconds that each path waited, measured by itself with the same
 * clock that the kernel uses.
 *
 *   waits MODE SECONDS
 *
 * MODE mutex: `holder` holds the mutex `planted.mutex` for 40 of every 50 ms, two `waiter` threads want it.
 * MODE uneven: one thread sleeps 40 ms in `long_nap` and 0.4 ms in `short_nap`, by turns; four threads nap briefly all the time.
 * MODE mmap: four threads change the memory map of the process all the time, and fight for the kernel's lock of it.
 * MODE write: four threads write large pieces into one file, and wait for the kernel's lock of it.
 * MODE signal: a thread runs; a timer's handler runs on top of it.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define OUT_OF_LINE __attribute__((noinline, noclone))

static struct {
	char first[72];
	pthread_mutex_t mutex;
} planted = {.mutex = PTHREAD_MUTEX_INITIALIZER};
static atomic_int over;
static atomic_long waited_for_mutex, slept_long, slept_short;

static long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void nap(long nanoseconds)
{
	struct timespec t = {nanoseconds / 1000000000L, nanoseconds % 1000000000L};

	nanosleep(&t, 0);
}

OUT_OF_LINE void hold_it(void)
{
	pthread_mutex_lock(&planted.mutex);
	nap(40000000);
	pthread_mutex_unlock(&planted.mutex);
	__asm__ volatile("");
}

static void *holder(void *unused)
{
	while (!over) {
		hold_it();
		nap(10000000);
	}
	return unused;
}

OUT_OF_LINE void want_it(void)
{
	long before = now();

	pthread_mutex_lock(&planted.mutex);
	waited_for_mutex += now() - before;
	pthread_mutex_unlock(&planted.mutex);
}

static void *waiter(void *unused)
{
	while (!over) {
		want_it();
		nap(1000000);
	}
	return unused;
}

OUT_OF_LINE void long_nap(void)
{
	long before = now();

	nap(40000000);
	slept_long += now() - before;
}

OUT_OF_LINE void short_nap(void)
{
	long before = now();

	nap(400000);
	slept_short += now() - before;
}

static void *uneven(void *unused)
{
	while (!over) {
		long_nap();
		short_nap();
	}
	return unused;
}

OUT_OF_LINE void brief_nap(void)
{
	nap(200000);
	__asm__ volatile("");
}

static void *restless(void *unused)
{
	while (!over)
		brief_nap();
	return unused;
}

static volatile unsigned long sink;

OUT_OF_LINE void spin_a_while(unsigned long turns)
{
	for (unsigned long i = 0; i < turns; i++)
		sink += i;
}

OUT_OF_LINE void in_the_handler(int signal)
{
	(void)signal;
	spin_a_while(3000000);
	__asm__ volatile("");
}

OUT_OF_LINE void interrupted_work(void)
{
	while (!over)
		spin_a_while(1000);
}

static void *worker(void *unused)
{
	interrupted_work();
	return unused;
}

OUT_OF_LINE void change_the_map(void)
{
	char *memory = mmap(0, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		exit(4);
	memory[0] = 1;
	munmap(memory, 1 << 16);
}

static void *mapper(void *unused)
{
	while (!over)
		change_the_map();
	return unused;
}

static int shared_file;

OUT_OF_LINE void write_a_piece(void)
{
	static char piece[16 << 20];

	if (pwrite(shared_file, piece, sizeof(piece), 0) < 0)
		exit(5);
	__asm__ volatile("");
}

static void *writer(void *unused)
{
	while (!over)
		write_a_piece();
	return unused;
}

static void start(pthread_t *thread, void *(*body)(void *))
{
	if (pthread_create(thread, 0, body, 0))
		exit(3);
}

int main(int count, char **arguments)
{
	pthread_t threads[8];
	int started = 0;
	const char *mode = count > 1 ? arguments[1] : "";

	if (!strcmp(mode, "mutex")) {
		start(&threads[started++], holder);
		start(&threads[started++], waiter);
		start(&threads[started++], waiter);
	} else if (!strcmp(mode, "uneven")) {
		start(&threads[started++], uneven);
		for (int i = 0; i < 4; i++)
			start(&threads[started++], restless);
	} else if (!strcmp(mode, "mmap")) {
		for (int i = 0; i < 4; i++)
			start(&threads[started++], mapper);
	} else if (!strcmp(mode, "write")) {
		char name[] = "/dev/shm/scaleprof-waits-XXXXXX";

		shared_file = mkstemp(name);
		if (shared_file < 0)
			return 6;
		unlink(name);
		for (int i = 0; i < 4; i++)
			start(&threads[started++], writer);
	} else if (!strcmp(mode, "signal")) {
		struct itimerval every = {{0, 20000}, {0, 20000}};
		sigset_t alarm;

		signal(SIGALRM, in_the_handler);
		sigemptyset(&alarm);
		sigaddset(&alarm, SIGALRM);
		start(&threads[started++], worker);
		/* The signal goes to a thread that does not block it. */
		pthread_sigmask(SIG_BLOCK, &alarm, 0);
		setitimer(ITIMER_REAL, &every, 0);
	} else {
		return 2;
	}
	/* Told when to begin and when to end, so that both sides count the same time. */
	puts("ready");
	fflush(stdout);
	getchar();
	waited_for_mutex = slept_long = slept_short = 0;
	puts("begun");
	fflush(stdout);
	getchar();
	printf("%ld %ld %ld\n", (long)waited_for_mutex, (long)slept_long, (long)slept_short);
	fflush(stdout);
	over = 1;
	for (int i = 0; i < started; i++)
		pthread_join(threads[i], 0);
	return 0;
}
