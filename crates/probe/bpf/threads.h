/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The slots of the threads: whose they are, what their states mean, which waits are chosen, who owns a futex.
 */
#ifndef SCALEPROF_THREADS_H
#define SCALEPROF_THREADS_H

#include "stacks.h"

static __always_inline struct thread_slot *slot_at(__u32 index)
{
	return bpf_map_lookup_elem(&slots, &index);
}

static __always_inline struct thread_slot *slot_of(struct task_struct *task)
{
	__u32 *place = bpf_task_storage_get(&slot_of_task, (void *)task, 0, 0);
	struct thread_slot *slot;

	if (!place || !*place)
		return 0;
	slot = slot_at(*place - 1);
	/* A slot that was given to another thread after this one ended. */
	return slot && slot->thread == (__u32)task->pid && !slot->ended ? slot : 0;
}

static __always_inline struct thread_slot *new_slot(struct task_struct *task, __u64 now, __u8 state)
{
	__u32 *place = bpf_task_storage_get(&slot_of_task, (void *)task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	__u32 thread = task->pid;
	struct control *settings = control();
	struct thread_slot *slot;
	__u32 index = 0;

	if (!place || !settings) {
		add(COUNT_NO_STORAGE, 1);
		return 0;
	}
	if (*place)
		return slot_of(task);
	if (bpf_map_pop_elem(&free_slots, &index)) {
		add(COUNT_NO_SLOT, 1);
		return 0;
	}
	slot = slot_at(index);
	if (!slot)
		return 0;
	__sync_fetch_and_add(&slot->version, 1);
	slot->state = state;
	slot->sampled = 0;
	slot->ended = 0;
	slot->from_start = 0;
	slot->since = now;
	slot->started = now;
	slot->ended_at = 0;
	for (int i = 0; i < STATES; i++) {
		slot->nanoseconds[i] = 0;
		slot->off_average[i] = settings->off_cpu_interval;
	}
	slot->switches = 0;
	slot->preemptions = 0;
	slot->net_waits = 0;
	slot->fault_waits = 0;
	slot->sleep = 0;
	slot->sleep_began = now;
	slot->runnable_at = now;
	slot->pc = 0;
	slot->sp = 0;
	slot->fp = 0;
	bpf_probe_read_kernel_str(slot->name, sizeof(slot->name), &task->comm);
	slot->thread = thread;
	__sync_fetch_and_add(&slot->version, 1);
	*place = index + 1;
	bpf_map_update_elem(&slot_of_number, &thread, &index, BPF_ANY);
	return slot;
}

static __always_inline void account(struct thread_slot *slot, __u64 now)
{
	/* The clocks of two CPUs may differ by some nanoseconds. */
	if (now > slot->since) {
		slot->nanoseconds[slot->state & (STATES - 1)] += now - slot->since;
		slot->since = now;
	}
}

static __always_inline bool is_socket(struct task_struct *task, __u64 descriptor)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **place = BPF_CORE_READ(table, fd), *file = 0;

	if (descriptor >= BPF_CORE_READ(table, max_fds))
		return 0;
	bpf_probe_read_kernel(&file, sizeof(file), place + descriptor);
	/* S_IFMT, S_IFSOCK: include/uapi/linux/stat.h */
	return file && (BPF_CORE_READ(file, f_inode, i_mode) & 0170000) == 0140000;
}

/* Why a thread leaves its CPU of its own will. */
static __always_inline __u8 blocked_state(struct thread_slot *slot, struct task_struct *task, const struct registers *registers)
{
	__u8 class = CALL_OTHER;

	if (registers->call < 0)
		slot->fault_waits++;
	if (BPF_CORE_READ_BITFIELD(task, in_iowait))
		return STATE_IO;
	if (registers->call >= 0 && registers->call < MAX_CALLS)
		class = call_class[registers->call & (MAX_CALLS - 1)];
	switch (class) {
	case CALL_FUTEX:
		return STATE_LOCK;
	case CALL_DISK:
		return STATE_IO;
	case CALL_NET:
		break;
	case CALL_SLEEP:
		return STATE_SLEEP;
	case CALL_POLL:
		if (!registers->arguments[1])
			return STATE_SLEEP;
		break;
	case CALL_SELECT:
		if (!registers->arguments[0])
			return STATE_SLEEP;
		break;
	case CALL_DESCRIPTOR:
		if (!is_socket(task, registers->arguments[0]))
			return STATE_OTHER;
		break;
	default:
		return STATE_OTHER;
	}
	slot->net_waits++;
	return STATE_NET;
}

/* Throws the coin. Waits for the client are all alike: an eighth of the stacks will do for them. */
static __always_inline bool choose(struct thread_slot *slot, const struct control *settings)
{
	__u64 expected = slot->off_average[slot->state & (STATES - 1)], interval = settings->off_cpu_interval;
	__u64 probability, least = 0xffffffffULL >> 9;

	if (slot->state == STATE_NET)
		expected >>= 3;
	if (expected >= interval) {
		probability = 0xffffffff;
	} else {
		/* interval is at most 2^31 (the program sees to it), so nothing overflows. */
		probability = (expected << 32) / (interval | 1);
		if (probability > 0xffffffff)
			probability = 0xffffffff;
		/* A floor, so that one long wait of a thread that never waited long has no boundless weight. */
		if (probability < least)
			probability = least;
	}
	slot->probability = probability;
	return probability == 0xffffffff || bpf_get_prandom_u32() < probability;
}

/* Where the owner of a glibc mutex stands (nptl: struct __pthread_mutex_s { int lock; unsigned count; int owner; }). */
static __always_inline __u32 futex_owner(__u64 futex)
{
	__u32 words[3] = {};

	if (bpf_probe_read_user(words, sizeof(words), (const void *)futex))
		return 0;
	/* 2: locked, with waiters. Anything else is no mutex or no longer locked. */
	return words[0] == 2 ? words[2] : 0;
}

static __always_inline void send_owner(__u32 thread, __u32 owner, __u64 sleep, __u64 now)
{
	struct scratch *scratch = scratch_for(SCRATCH_SWITCH);
	__u32 *index = bpf_map_lookup_elem(&slot_of_number, &owner);
	struct thread_slot *slot = index ? slot_at(*index) : 0;
	struct registers registers = {};
	__u32 version;

	if (!scratch || !slot || slot->thread != owner)
		return;
	version = slot->version;
	clear(&scratch->record);
	scratch->record.kind = RECORD_OWNER;
	scratch->record.thread = thread;
	scratch->record.other = owner;
	scratch->record.sleep = sleep;
	scratch->record.time = now;
	scratch->record.state = slot->state;
	registers.pc = slot->pc;
	registers.sp = slot->sp;
	registers.fp = slot->fp;
	if (slot->state == STATE_CPU || version & 1) {
		scratch->record.ending = END_NOT_TAKEN;
	} else {
		take_user_stack(scratch, &registers);
		/* It ran in between: what was read is no stack of one moment. */
		if (slot->version != version) {
			scratch->record.user_frames = 0;
			scratch->record.ending = END_NOT_TAKEN;
		}
	}
	add(COUNT_OTHER_STACKS, 1);
	send(scratch);
}

#endif
