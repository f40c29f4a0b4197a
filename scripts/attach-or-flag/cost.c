/*
 * What a program at context switches costs, and what attaching and detaching it costs: the machine itself, as root.
 *
 *   cost switches COST.BPF.O [CPU [REPEATS [ROUNDS]]]   ns a round of two switches and two wake-ups on one CPU, by what is attached
 *   cost rounds   CPU SECONDS                           the same rounds for so long, every 5 ms a line "time ns": for who watches this process
 *   cost toggles  COST.BPF.O [PAIRS [PAUSE_MS]]         what an attach and a detach take, and what the other CPUs feel of it
 */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct bpf_object *object;

static double now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void pin(int cpu, int realtime)
{
	struct sched_param param = { .sched_priority = 10 };
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("affinity");
	/* Before all that is not urgent, so that other programs do not come into it. */
	if (realtime && sched_setscheduler(0, SCHED_FIFO, &param))
		die("SCHED_FIFO");
}

static struct bpf_link *attach(const char *name)
{
	struct bpf_program *program = bpf_object__find_program_by_name(object, name);
	struct bpf_link *link = program ? bpf_program__attach(program) : NULL;

	if (!link)
		die(name);
	return link;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double quantile(double *values, int count, double share)
{
	qsort(values, count, sizeof(*values), compare);
	return values[(int)(share * (count - 1) + 0.5)];
}

/* Two processes and two pipes on one CPU: nanoseconds a round. */
static double rounds(long count)
{
	int there[2], back[2];
	double began;
	char byte = 0;
	pid_t other;

	if (pipe(there) || pipe(back))
		die("pipe");
	other = fork();
	if (!other) {
		close(there[1]);
		while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
			;
		_exit(0);
	}
	for (int i = 0; i < 2000; i++)
		if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
			die("round");
	began = now(CLOCK_MONOTONIC);
	for (long i = 0; i < count; i++)
		if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
			die("round");
	began = now(CLOCK_MONOTONIC) - began;
	close(there[0]), close(there[1]), close(back[0]), close(back[1]);
	waitpid(other, NULL, 0);
	return began / count * 1e9;
}

/* One pair of processes all the time. */
static void steady(double end)
{
	int there[2], back[2];
	char byte = 0;

	if (pipe(there) || pipe(back))
		die("pipe");
	if (!fork()) {
		close(there[1]);
		while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
			;
		_exit(0);
	}
	close(there[0]);
	while (now(CLOCK_MONOTONIC) < end) {
		double began = now(CLOCK_MONOTONIC), time;
		long count = 0;

		do {
			for (int i = 0; i < 20; i++, count++)
				if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
					die("round");
			time = now(CLOCK_MONOTONIC);
		} while (time < began + 0.005);
		printf("%.3f %.0f\n", time, (time - began) / count * 1e9);
		fflush(stdout);
	}
}

static const char *ways[][3] = {
	{ "nothing" },
	{ "returns 0", "switch_nothing", "waking_nothing" },
	{ "flag in a variable", "switch_variable", "waking_variable" },
	{ "flag in a map", "switch_map", "waking_map" },
	{ "switch: returns 0", "switch_nothing" },
	{ "switch: flag in a map", "switch_map" },
};
#define WAYS (int)(sizeof(ways) / sizeof(ways[0]))

static void switch_costs(int cpu, int repeats, long count)
{
	double took[WAYS][1000], over[WAYS][1000];

	pin(cpu, 1);
	rounds(count);
	for (int repeat = 0; repeat < repeats; repeat++) {
		for (int n = 0; n < WAYS; n++) {
			int way = repeat % 2 ? WAYS - 1 - n : n;
			struct bpf_link *links[2] = { 0 };

			for (int i = 0; i < 2 && ways[way][i + 1]; i++)
				links[i] = attach(ways[way][i + 1]);
			took[way][repeat] = rounds(count);
			for (int i = 0; i < 2; i++)
				bpf_link__destroy(links[i]);
		}
		for (int way = 0; way < WAYS; way++)
			over[way][repeat] = took[way][repeat] - took[0][repeat];
	}
	printf("%-24s %10s %12s %22s\n", "attached", "ns/round", "more, median", "quartiles of the more");
	for (int way = 0; way < WAYS; way++)
		printf("%-24s %10.0f %12.0f %10.0f %10.0f\n", ways[way][0], quantile(took[way], repeats, 0.5), quantile(over[way], repeats, 0.5),
		       quantile(over[way], repeats, 0.25), quantile(over[way], repeats, 0.75));
}

/* Interrupts of a line of /proc/interrupts, of all CPUs. */
static unsigned long interrupts(const char *name)
{
	static char line[1 << 16];
	unsigned long all = 0;
	FILE *file = fopen("/proc/interrupts", "r");

	while (file && fgets(line, sizeof(line), file)) {
		char *at = strstr(line, name), *end;

		if (!at || at > line + 4)
			continue;
		for (at += strlen(name);; at = end) {
			unsigned long one = strtoul(at, &end, 10);

			if (end == at)
				break;
			all += one;
		}
	}
	if (file)
		fclose(file);
	return all;
}

/* A thread that only looks at the clock, on another CPU: what is taken from it, and the longest that it stood. */
struct watcher {
	volatile int stop, ready;
	double gone[4];
	long gaps[4];
	double longest, lasted;
};
static const double from[4] = { 1e-6, 5e-6, 20e-6, 100e-6 };

static pid_t watch(struct watcher *shared, int cpu)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	pin(cpu, 1);
	shared->ready = 1;
	double began = now(CLOCK_MONOTONIC), before = began;
	while (!shared->stop) {
		double time = now(CLOCK_MONOTONIC), gap = time - before;

		for (int i = 0; i < 4; i++)
			if (gap > from[i]) {
				shared->gaps[i]++;
				shared->gone[i] += gap;
			}
		if (gap > shared->longest)
			shared->longest = gap;
		before = time;
	}
	shared->lasted = before - began;
	_exit(0);
}

static const char *sets[][5] = {
	{ "switches and wake-ups", "switch_map", "waking_map" },
	{ "switches", "switch_map" },
	{ "kernel locks", "end_variable", "begin_variable" },
	{ "nothing" },
};

static void toggle_costs(int pairs, int pause)
{
	static double up[100000], down[100000];

	for (int which = 0; which < 4; which++) {
		struct watcher *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		unsigned long calls, shootdowns;
		struct rusage usage;
		double cpu, began, spent;
		pid_t other;

		memset(shared, 0, sizeof(*shared));
		other = watch(shared, 1);
		pin(0, 0);
		while (!shared->ready)
			usleep(1000);
		calls = interrupts("CAL:"), shootdowns = interrupts("TLB:");
		cpu = now(CLOCK_THREAD_CPUTIME_ID);
		began = now(CLOCK_MONOTONIC);
		for (int i = 0; i < pairs; i++) {
			struct bpf_link *links[4] = { 0 };
			double at = now(CLOCK_MONOTONIC);

			for (int n = 0; n < 4 && sets[which][n + 1]; n++)
				links[n] = attach(sets[which][n + 1]);
			up[i] = now(CLOCK_MONOTONIC) - at;
			usleep(pause * 1000);
			at = now(CLOCK_MONOTONIC);
			for (int n = 0; n < 4; n++)
				bpf_link__destroy(links[n]);
			down[i] = now(CLOCK_MONOTONIC) - at;
			usleep(pause * 1000);
		}
		spent = now(CLOCK_MONOTONIC) - began;
		cpu = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
		calls = interrupts("CAL:") - calls, shootdowns = interrupts("TLB:") - shootdowns;
		shared->stop = 1;
		wait4(other, NULL, 0, &usage);
		printf("%s: %d pairs in %.1f s: attach %.0f us (median; 90 %%: %.0f), detach %.0f us (90 %%: %.0f), own CPU time %.0f us a pair\n", sets[which][0], pairs, spent,
		       quantile(up, pairs, 0.5) * 1e6, quantile(up, pairs, 0.9) * 1e6, quantile(down, pairs, 0.5) * 1e6, quantile(down, pairs, 0.9) * 1e6, cpu / pairs * 1e6);
		printf("  interrupts a pair, all CPUs: %.1f function calls, of these %.1f TLB\n", (double)calls / pairs, (double)shootdowns / pairs);
		printf("  the other CPU: %.1f s;", shared->lasted);
		for (int i = 0; i < 4; i++)
			printf(" gaps over %.0f us: %.1f, %.1f us a pair;", from[i] * 1e6, (double)shared->gaps[i] / pairs, shared->gone[i] / pairs * 1e6);
		printf(" longest %.0f us\n", shared->longest * 1e6);
		fflush(stdout);
		munmap(shared, 4096);
	}
}

static int quiet(enum libbpf_print_level level, const char *format, va_list arguments)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, format, arguments) : 0;
}

int main(int count, char **words)
{
#define WORD(n, otherwise) (count > (n) ? atoi(words[n]) : (otherwise))
	if (count < 3)
		return 2;
	if (!strcmp(words[1], "rounds")) {
		double end = now(CLOCK_MONOTONIC) + WORD(3, 10);

		pin(WORD(2, 1), 1);
		steady(end);
		return 0;
	}
	libbpf_set_print(quiet);
	object = bpf_object__open(words[2]);
	if (!object || bpf_object__load(object))
		die("loading");
	if (!strcmp(words[1], "switches")) {
		unsigned int zero = 0;
		unsigned long long one = 1;

		if (bpf_map_update_elem(bpf_object__find_map_fd_by_name(object, "control"), &zero, &one, 0))
			die("control");
		switch_costs(WORD(3, 1), WORD(4, 15), WORD(5, 100000));
	} else {
		toggle_costs(WORD(3, 200), WORD(4, 20));
	}
	return 0;
}
