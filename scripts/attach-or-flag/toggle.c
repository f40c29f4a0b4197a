/*
 * Switches the tracepoint sched_switch on and off, as fast as it goes or at a rate, and nothing else, while pairs of processes switch to and fro.
 * No library, no scaleprof: a BPF program of two instructions (return 0) at the raw tracepoint, or the kernel's own ftrace event.
 *
 *   toggle bpf|ftrace SECONDS [PAIRS [RATE]]
 *
 * Says every second how often it did so. On a sound machine it ends with "== toggle: done".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

static int bpf(int command, union bpf_attr *attr)
{
	return syscall(__NR_bpf, command, attr, sizeof(*attr));
}

static int load(void)
{
	struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = { 0 };

	attr.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT;
	attr.insns = (unsigned long)code;
	attr.insn_cnt = 2;
	attr.license = (unsigned long)"GPL";
	return bpf(BPF_PROG_LOAD, &attr);
}

static int attach(int program, const char *name)
{
	union bpf_attr attr = { 0 };

	attr.raw_tracepoint.name = (unsigned long)name;
	attr.raw_tracepoint.prog_fd = program;
	return bpf(BPF_RAW_TRACEPOINT_OPEN, &attr);
}

static void pair(void)
{
	int there[2], back[2];
	char byte = 0;

	if (pipe(there) || pipe(back))
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Else each step of attaching waits for its turn among them. */
	if (nice(19) == -1)
		_exit(1);
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
			;
		_exit(0);
	}
	while (write(there[1], &byte, 1) == 1 && read(back[0], &byte, 1) == 1)
		;
	_exit(0);
}

static unsigned long switches(void)
{
	static char line[1 << 16];
	unsigned long all = 0;
	FILE *file = fopen("/proc/stat", "r");

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "ctxt %lu", &all) == 1)
			break;
	if (file)
		fclose(file);
	return all;
}

/* Function call interrupts of all CPUs. */
static unsigned long calls(void)
{
	static char line[1 << 16];
	unsigned long all = 0;
	FILE *file = fopen("/proc/interrupts", "r");

	while (file && fgets(line, sizeof(line), file)) {
		char *at = strstr(line, "CAL:"), *end;

		for (at = at ? at + 4 : line;; at = end) {
			unsigned long one = strtoul(at, &end, 10);

			if (at == line || end == at)
				break;
			all += one;
		}
	}
	if (file)
		fclose(file);
	return all;
}

int main(int count, char **words)
{
	int ftrace = count > 1 && !strcmp(words[1], "ftrace"), event = -1, program = -1, link;
	double seconds = count > 2 ? atof(words[2]) : 10, rate = count > 4 ? atof(words[4]) : 0, began, said;
	unsigned long toggles = 0, before, called;

	/* The pairs go with it, and nobody else. */
	setpgid(0, 0);
	if (ftrace) {
		int fd = open("/sys/kernel/tracing/options/record-cmd", O_WRONLY);

		if (fd >= 0 && write(fd, "0", 1) != 1)
			perror("record-cmd");
		event = open("/sys/kernel/tracing/events/sched/sched_switch/enable", O_WRONLY);
	} else {
		program = load();
	}
	if (event < 0 && program < 0) {
		perror("toggle");
		return 1;
	}
	for (int i = 0; i < (count > 3 ? atoi(words[3]) : 4); i++)
		if (!fork())
			pair();
	before = switches(), called = calls();
	began = said = now();
	while (now() < began + seconds) {
		if (ftrace) {
			if (pwrite(event, "1", 1, 0) != 1 || pwrite(event, "0", 1, 0) != 1)
				return perror("enable"), 1;
		} else {
			link = attach(program, "sched_switch");
			if (link < 0)
				return perror("attach"), 1;
			close(link);
		}
		toggles += 2;
		if (rate > 0) {
			double wait = began + toggles / rate - now();

			if (wait > 0)
				usleep(wait * 1e6);
		}
		if (now() >= said + 1) {
			said = now();
			printf("== toggle %s: %lu toggles, %.1f s, %lu switches\n", words[1], toggles, said - began, switches() - before);
			fflush(stdout);
		}
	}
	printf("== toggle: done: %s %lu toggles, %.1f s, %lu switches, %.1f function calls a pair\n", words[1], toggles, now() - began,
	       switches() - before, (calls() - called) / (toggles / 2.0));
	fflush(stdout);
	signal(SIGTERM, SIG_IGN);
	kill(0, SIGTERM);
	return 0;
}
