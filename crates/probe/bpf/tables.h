/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the programs are told before they are loaded, and the tables that they share with the program that loads them.
 */
#ifndef SCALEPROF_TABLES_H
#define SCALEPROF_TABLES_H

#include "kernel.h"
#include "layout.h"

/* Set before loading. */
const volatile __u32 watched = 0;	   /* the process, as the initial PID namespace numbers it */
const volatile bool has_previous_state = 0; /* sched_switch tells the state that the thread left with (Linux 5.18) */
const volatile bool foreign_names = 0; /* mutexes name their owners by other numbers than the initial PID namespace's */
const volatile bool ignore_run_delay = 0; /* do as where the kernel keeps no time in run queues */
const volatile __u8 call_class[MAX_CALLS] = {};

struct row_chunk {
	struct unwind_row rows[ROWS_OF_CHUNK];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct row_chunk);
} rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct page_rows);
} pages SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unwind_rule);
} rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct code_object);
} objects SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 2 * MAX_MAPPINGS);
	__type(key, __u32);
	__type(value, struct mapping);
} mappings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct control);
} controls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct thread_slot);
} slots SEC(".maps");

/* Slots that are free. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 1);
	__type(value, __u32);
} free_slots SEC(".maps");

/*
 * Which slot a thread has. By its number in plain memory: a look into task storage costs a call, twice a switch, and could
 * not find the owner of a lock.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct slot_numbers);
} slot_of_thread SEC(".maps");

/* One ring a few CPUs; the program makes them. */
struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct ring);
} rings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNT_MAX);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, ENDINGS);
	__type(key, __u32);
	__type(value, __u64);
} endings SEC(".maps");

/* A record under way: the verifier allows 512 bytes of stack. The timer can interrupt the other programs. */
struct scratch {
	struct record record;
	__u64 addresses[MAX_USER_FRAMES + MAX_KERNEL_FRAMES];
};

enum scratch_use { SCRATCH_SWITCH = 0, SCRATCH_TIMER = 1, SCRATCHES = 2 };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCHES);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

const volatile __u32 ring_count = 1;

static __always_inline void add(__u32 which, __u64 amount)
{
	__u64 *count = bpf_map_lookup_elem(&counts, &which);

	if (count)
		*count += amount;
}

static __always_inline struct control *control(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&controls, &zero);
}

#endif
