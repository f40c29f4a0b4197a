/*
 * Threads whose waits are known. Prints, at the end, the nanoseconds that each path waited, measured by itself with the same
 * clock that the kernel uses.
 *
 *   waits MODE SECONDS
 *
 * MODE mutex: `holder` holds the mutex `planted.mutex` for 40 of every 50 ms, two `waiter` threads want it.
 * MODE inherit: the same, and the mutex has priority inheritance. MODE robust: the same, and it survives its owner.
 * MODE futex_wait, MODE futex_waitv: the same with the word `planted.word` and the system calls of that name.
 * MODE hung: `holder` holds the mutex from before the beginning to the end. MODE busy: the same as mutex, and it computes meanwhile.
 * MODE uneven: one thread sleeps 40 ms in `long_nap` and 0.4 ms in `short_nap`, by turns; four threads nap briefly all the time.
 * MODE mmap: four threads change the memory map of the process all the time, and fight for the kernel's lock of it.
 * MODE write: four threads write large pieces into one file, and wait for the kernel's lock of it.
 * MODE calls: two threads are in a long system call nearly all the time, two nap briefly.
 * MODE without_rows: a thread naps below a function that has no unwind rules, but a frame pointer.
 * MODE own_making: a thread naps below a function that the program has put into anonymous memory, and of which it has written the name
 *     to /tmp/perf-PID.map. MODE copied: the same without a name.
 * MODE many: 2000 threads nap for 200 ms.
 * MODE short_lived: four threads start others all the time, which end at once.
 * MODE signal: a thread runs; a timer's handler runs on top of it.
 */
#include <pthread.h>
#include <fcntl.h>
#include <signal.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
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
	atomic_uint word;
} planted = {.mutex = PTHREAD_MUTEX_INITIALIZER};
static atomic_int over, held;
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

OUT_OF_LINE void hold_to_the_end(void)
{
	pthread_mutex_lock(&planted.mutex);
	held = 1;
	while (!over)
		nap(1000000000);
	pthread_mutex_unlock(&planted.mutex);
}

static void *stubborn_holder(void *unused)
{
	hold_to_the_end();
	return unused;
}

OUT_OF_LINE void compute(void)
{
	long begin = now();

	while (now() - begin < 40000000)
		;
}

OUT_OF_LINE void hold_and_compute(void)
{
	pthread_mutex_lock(&planted.mutex);
	compute();
	pthread_mutex_unlock(&planted.mutex);
	__asm__ volatile("");
}

static void *busy_holder(void *unused)
{
	while (!over) {
		hold_and_compute();
		nap(10000000);
	}
	return unused;
}

/* include/uapi/linux/futex.h of Linux 6.7; the C library's may be older. */
#define CALL_FUTEX_WAITV 449
#define CALL_FUTEX_WAIT 455
#define SIZE_32_BITS_PRIVATE (2 | 128)
struct one_of_many {
	unsigned long long value, address;
	unsigned flags, reserved;
};

OUT_OF_LINE void hold_the_word(void)
{
	planted.word = 1;
	nap(40000000);
	planted.word = 0;
	syscall(SYS_futex, &planted.word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 2, 0, 0, 0);
}

static void *word_holder(void *unused)
{
	while (!over) {
		hold_the_word();
		nap(10000000);
	}
	return unused;
}

static long waiting_call;

OUT_OF_LINE void want_the_word(void)
{
	struct one_of_many one = {1, (unsigned long)&planted.word, SIZE_32_BITS_PRIVATE, 0};
	long before = now();

	while (planted.word) {
		if (waiting_call == CALL_FUTEX_WAITV)
			syscall(CALL_FUTEX_WAITV, &one, 1, 0, 0, 0);
		else
			syscall(CALL_FUTEX_WAIT, &planted.word, 1L, ~0u, SIZE_32_BITS_PRIVATE, 0, 0);
	}
	waited_for_mutex += now() - before;
}

static void *word_waiter(void *unused)
{
	while (!over) {
		want_the_word();
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

void without_rows(void (*inside)(void));

OUT_OF_LINE void above_it(void)
{
	without_rows(brief_nap);
	__asm__ volatile("");
}

static void *rowless(void *unused)
{
	while (!over)
		above_it();
	return unused;
}

static void (*made)(void (*inside)(void));

/* Puts a function into anonymous memory that calls another and keeps a frame pointer. */
static void make(int named)
{
#ifdef __aarch64__
	static const unsigned int code[] = {0xa9bf7bfd, 0x910003fd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0};
#else
	static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
#endif
	char *memory = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char path[64];
	FILE *map;

	if (memory == MAP_FAILED)
		exit(3);
	memcpy(memory + 64, code, sizeof(code));
	__builtin___clear_cache(memory, memory + 4096);
	made = (void (*)(void (*)(void)))(memory + 64);
	if (!named)
		return;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = fopen(path, "w");
	if (!map)
		exit(3);
	fprintf(map, "%lx %lx made by hand\n", (unsigned long)made, (unsigned long)sizeof(code));
	fclose(map);
}

OUT_OF_LINE void above_made(void)
{
	made(brief_nap);
	__asm__ volatile("");
}

static void *maker(void *unused)
{
	while (!over)
		above_made();
	return unused;
}

static void *sleepy(void *unused)
{
	while (!over)
		nap(200000000);
	return unused;
}

static void *short_lived(void *unused)
{
	brief_nap();
	return unused;
}

static void start(pthread_t *thread, void *(*body)(void *));

/*
 * Four of these want half of a CPU, however slow it is: they rest for seven times as long as each
 * thread took, and start some thousands a second. In a machine that counts its time in instructions
 * (scripts/kernels --tests) four that never rested took four fifths of the one CPU, and whoever
 * watched could not give back the slots of threads that had ended as quickly as others began.
 */
static void *starter(void *unused)
{
	const long longest_rest = 10000000;

	while (!over) {
		long begin = now(), took;
		pthread_t thread;

		start(&thread, short_lived);
		pthread_join(thread, 0);
		took = now() - begin;
		nap(took < longest_rest / 7 ? 7 * took : longest_rest);
	}
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
	/* So that a wait is short beside what a watch sees at a stretch, on slow machines too. */
	static char piece[2 << 20];

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

static int zeroes;

OUT_OF_LINE void read_zeroes(char *into, size_t bytes)
{
	if (read(zeroes, into, bytes) < 0)
		exit(7);
	__asm__ volatile("");
}

static void *caller(void *unused)
{
	size_t bytes = 1 << 20;
	char *into = malloc(bytes);

	while (into && !over)
		read_zeroes(into, bytes);
	free(into);
	return unused;
}

static void start(pthread_t *thread, void *(*body)(void *))
{
	if (pthread_create(thread, 0, body, 0))
		exit(3);
}

int main(int count, char **arguments)
{
	static pthread_t threads[2000];
	int started = 0;
	const char *mode = count > 1 ? arguments[1] : "";

	if (!strcmp(mode, "inherit") || !strcmp(mode, "robust")) {
		pthread_mutexattr_t kind;

		pthread_mutexattr_init(&kind);
		if (!strcmp(mode, "inherit"))
			pthread_mutexattr_setprotocol(&kind, PTHREAD_PRIO_INHERIT);
		else
			pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
		if (pthread_mutex_init(&planted.mutex, &kind))
			return 9;
		mode = "mutex";
	}
	if (!strcmp(mode, "mutex") || !strcmp(mode, "busy")) {
		start(&threads[started++], strcmp(mode, "busy") ? holder : busy_holder);
		start(&threads[started++], waiter);
		start(&threads[started++], waiter);
	} else if (!strcmp(mode, "hung")) {
		start(&threads[started++], stubborn_holder);
		while (!held)
			nap(1000000);
		start(&threads[started++], waiter);
		start(&threads[started++], waiter);
		/* Until they wait. */
		nap(200000000);
	} else if (!strcmp(mode, "futex_wait") || !strcmp(mode, "futex_waitv")) {
		waiting_call = strcmp(mode, "futex_wait") ? CALL_FUTEX_WAITV : CALL_FUTEX_WAIT;
		start(&threads[started++], word_holder);
		start(&threads[started++], word_waiter);
		start(&threads[started++], word_waiter);
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
	} else if (!strcmp(mode, "calls")) {
		zeroes = open("/dev/zero", O_RDONLY);
		if (zeroes < 0)
			return 7;
		for (int i = 0; i < 2; i++) {
			start(&threads[started++], caller);
			start(&threads[started++], restless);
		}
	} else if (!strcmp(mode, "without_rows")) {
		start(&threads[started++], rowless);
	} else if (!strcmp(mode, "own_making") || !strcmp(mode, "copied")) {
		make(!strcmp(mode, "own_making"));
		start(&threads[started++], maker);
	} else if (!strcmp(mode, "many")) {
		while (started < 2000)
			start(&threads[started++], sleepy);
	} else if (!strcmp(mode, "short_lived")) {
		for (int i = 0; i < 4; i++)
			start(&threads[started++], starter);
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
