// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What a program at a switch costs: one that returns at once, one that reads a flag first, in a variable or in an array map. */
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* As in scaleprof: a mmapable array that the profiler writes through shared memory. */
struct settings {
	__u64 resting;
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct settings);
} control SEC(".maps");

__u64 resting = 1, seen;

#define PROGRAM(name, place, body) \
	SEC("tp_btf/" place) int name(unsigned long long *ctx) { body }

#define NOTHING return 0;
#define VARIABLE \
	if (*(volatile __u64 *)&resting) \
		return 0; \
	seen++; \
	return 0;
#define MAP \
	__u32 zero = 0; \
	struct settings *settings = bpf_map_lookup_elem(&control, &zero); \
	if (!settings || *(volatile __u64 *)&settings->resting) \
		return 0; \
	seen++; \
	return 0;

PROGRAM(switch_nothing, "sched_switch", NOTHING)
PROGRAM(switch_variable, "sched_switch", VARIABLE)
PROGRAM(switch_map, "sched_switch", MAP)
PROGRAM(waking_nothing, "sched_waking", NOTHING)
PROGRAM(waking_variable, "sched_waking", VARIABLE)
PROGRAM(waking_map, "sched_waking", MAP)
PROGRAM(begin_variable, "contention_begin", VARIABLE)
PROGRAM(end_variable, "contention_end", VARIABLE)
