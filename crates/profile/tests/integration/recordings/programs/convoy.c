/* Three threads that each want one mutex again and again; how long they waited for it by their own clock and how long they slept with it, in
 * nanoseconds. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

pthread_mutex_t the_convoy = PTHREAD_MUTEX_INITIALIZER;
static long long waited, slept;

static long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void *drive(void *unused)
{
	for (int turn = 0; turn < 100; turn++) {
		long long before = now();

		pthread_mutex_lock(&the_convoy);
		waited += now() - before;
		before = now();
		usleep(2000);
		slept += now() - before;
		pthread_mutex_unlock(&the_convoy);
	}
	return unused;
}

int main(void)
{
	pthread_t threads[3];

	for (int n = 0; n < 3; n++)
		pthread_create(&threads[n], 0, drive, 0);
	for (int n = 0; n < 3; n++)
		pthread_join(threads[n], 0);
	printf("%lld %lld\n", waited, slept);
	return 0;
}
