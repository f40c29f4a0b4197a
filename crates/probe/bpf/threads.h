/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The slots of the threads: whose they are, what their states mean, which waits are chosen.
 */
#ifndef SCALEPROF_THREADS_H
#define SCALEPROF_THREADS_H

#include "futex.h"

_Static_assert((STATES & (STATES - 1)) == 0, "a state is kept within its table by a mask");

static __always_inline struct thread_slot *slot_at(__u32 index)
{
	return bpf_map_lookup_elem(&slots, &index);
}

/* Where the number of a thread's slot stands; none where the kernel gives higher numbers than when the probe began. */
static __always_inline __u32 *place_of(__u32 thread)
{
	__u32 group = thread / THREADS_OF_GROUP;
	struct slot_numbers *numbers = bpf_map_lookup_elem(&slot_of_thread, &group);

	return numbers ? &numbers->slot[thread % THREADS_OF_GROUP] : 0;
}

static __always_inline struct thread_slot *slot_of(__u32 thread)
{
	__u32 *place = place_of(thread);

	return place && *place ? slot_at(*place - 1) : 0;
}

/*
 * Who writes the sums of a slot holds it: its version is odd meanwhile, which also tells a reader to look again. Whoever goes through all
 * threads and the CPU that takes one of them up may want it at the same moment. Nobody waits: the holder may lose its CPU with it. A
 * switch that finds it held is left out, and what the thread did stands in the scheduler's account: see set_right(). That a thread got
 * a CPU, and when it was woken, is marked without holding the slot.
 */
static __always_inline bool hold(struct thread_slot *slot)
{
	__u32 version = *(volatile __u32 *)&slot->version;

	return !(version & 1) && __sync_val_compare_and_swap(&slot->version, version, version + 1) == version;
}

/* By an instruction that orders memory on all processors; one that merely adds does not. */
static __always_inline void let_go(struct thread_slot *slot)
{
	__u32 version = *(volatile __u32 *)&slot->version;

	__sync_val_compare_and_swap(&slot->version, version, version + 1);
}

/* The registers of user space with which a thread left its CPU. */
static __always_inline void keep_registers(struct thread_slot *slot, const struct registers *registers)
{
	slot->pc = registers->pc;
	slot->sp = registers->sp;
	slot->fp = registers->fp;
#if defined(__TARGET_ARCH_arm64)
	slot->lr = registers->lr;
#endif
}

/* Whether this kernel keeps the time that threads spend in run queues (CONFIG_SCHED_INFO). */
static __always_inline bool scheduler_keeps_queues(struct task_struct *task)
{
	return !ignore_run_delay && bpf_core_field_exists(task->sched_info.run_delay);
}

static __always_inline bool run_delay(struct task_struct *task, __u64 *nanoseconds)
{
	if (!scheduler_keeps_queues(task))
		return 0;
	*nanoseconds = task->sched_info.run_delay;
	return 1;
}

static __always_inline struct thread_slot *new_slot(struct task_struct *task, __u64 now, __u8 state)
{
	__u32 thread = task->pid, index = 0, before, taken;
	__u32 *place = place_of(thread);
	struct control *settings = control();
	struct thread_slot *slot;

	/* One that is about to end has given its slot back. */
	if (task->flags & PF_EXITING)
		return 0;
	if (!place || !settings || bpf_map_pop_elem(&free_slots, &index)) {
		add(COUNT_NO_SLOT, 1);
		return 0;
	}
	slot = slot_at(index);
	/* Nobody else knows a free one. */
	if (!slot || !hold(slot))
		return 0;
	slot->state = state;
	slot->left_as = state;
	slot->sampled = 0;
	slot->ended = 0;
	slot->from_start = 0;
	slot->left_at = now;
	slot->entered_at = now;
	slot->started = now;
	slot->ended_at = 0;
	for (int i = 0; i < STATES; i++) {
		slot->nanoseconds[i] = 0;
		slot->off_average[i] = (__u32)settings->off_cpu_interval;
	}
	slot->ran = task->se.sum_exec_runtime;
	slot->queued = 0;
	run_delay(task, &slot->queued);
	slot->not_its_own = 0;
	slot->uncharged = 0;
	slot->wanted_by = 0;
	slot->preemptions = 0;
	slot->migrations = 0;
	slot->net_waits = 0;
	slot->fault_waits = 0;
	slot->sleep = 0;
	slot->runnable_at = now;
	slot->pc = 0;
	slot->sp = 0;
	slot->fp = 0;
	slot->kernel_lock = 0;
	slot->kernel_lock_kind = 0;
	slot->kernel_lock_epoch = settings->fights_epoch;
	slot->epoch = settings->epoch;
	slot->unseen = 0;
	slot->unseen_ran = 0;
	slot->looked_at = 0;
	slot->first_voluntary = task->nvcsw;
	slot->first_preemptions = task->nivcsw;
	slot->seen_switches = 0;
	slot->lock = 0;
	slot->lock_operation = 0;
	slot->cpu = bpf_get_smp_processor_id();
	bpf_probe_read_kernel_str(slot->name, sizeof(slot->name), &task->comm);
	slot->thread = thread;
	let_go(slot);
	/* It may have been found and have switched at the same moment; and its number may be that of a thread that was not heard of to go. */
	before = *(volatile __u32 *)place;
	if (!(before & SLOT_OF_ENDING))
		before = 0;
	taken = __sync_val_compare_and_swap(place, before, index + 1);
	if (taken != before) {
		slot->thread = 0;
		bpf_map_push_elem(&free_slots, &index, 0);
		return slot_at(taken - 1);
	}
	return slot;
}

/*
 * A thread leaves its CPU, or ends: shares the time since it left one before among what it did.
 *
 *     left_at          runnable_at          entered_at           now
 *        |---- blocked -----|----- queued -----|------ on CPU ----|
 *
 * The ends of the whole interval are ours. How much of it was spent on the CPU and in the run queue is the scheduler's own
 * account, which is closed at this point for the thread that leaves: it agrees with /proc to the nanosecond, and costs
 * neither a second program at every wake-up nor a second look at the clock. The rest is the state in which it had left.
 *
 * The scheduler reads its clock some tenths of a microsecond before our tracepoints, sometimes more before the one than before
 * the other: one interval proves nothing. But where it goes on charging less than passes between them, interrupts or the host
 * of a virtual machine took the difference while the thread held the CPU: that is time on CPU too, and no waiting.
 */
static __always_inline void close_interval(struct thread_slot *slot, struct task_struct *task, __u64 now, bool account_is_closed)
{
	const __s64 slack = 20000;
	__u64 ran = task->se.sum_exec_runtime, all, on, charged, rest, queued = 0, total = 0;
	__s64 uncharged;
	__u32 *average;
	bool scheduler_knows = run_delay(task, &total);

	/* The clocks of two CPUs may differ by some nanoseconds. */
	if (now <= slot->left_at)
		return;
	all = now - slot->left_at;
	on = now > slot->entered_at ? now - slot->entered_at : 0;
	charged = ran - slot->ran;
	uncharged = slot->uncharged + (__s64)(on - charged);
	if (!account_is_closed) {
		charged = charged > on ? charged : on;
		uncharged = 0;
	} else if (uncharged > 0) {
		slot->not_its_own += uncharged;
		charged += uncharged;
		uncharged = 0;
	} else if (uncharged < -slack) {
		uncharged = -slack;
	}
	slot->uncharged = uncharged;
	if (charged > all)
		charged = all;
	rest = all - charged;
	if (slot->left_as == STATE_RUNQ)
		queued = rest;
	else if (scheduler_knows)
		/* What was added of a wait under way may have been a little more than the scheduler makes of it when it is over. */
		queued = total > slot->queued ? total - slot->queued : 0;
	else if (slot->runnable_at && slot->entered_at > slot->runnable_at)
		queued = slot->entered_at - slot->runnable_at;
	if (queued > rest)
		queued = rest;
	slot->nanoseconds[STATE_CPU] += charged;
	slot->nanoseconds[STATE_RUNQ] += queued;
	slot->nanoseconds[slot->left_as & (STATES - 1)] += rest - queued;
	average = &slot->off_average[slot->left_as & (STATES - 1)];
	*average += (rest > 0xffffffff ? 0xffffffff : (__u32)rest) / 8 - *average / 8;
	slot->left_at = now;
	slot->ran = account_is_closed ? ran : slot->ran + charged;
	slot->queued = total;
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

/* What a system call waits for; outside of one the number is negative. */
static __always_inline enum call_class class_of(__s64 call)
{
	__u64 index = call;

	if (index >= MAX_CALLS)
		return CALL_OTHER;
	/*
	 * The compiler knows by now that the mask changes nothing, and leaves it out. The number of aarch64 has 32 bits, whose bounds
	 * the verifier of Linux 6.1 does not carry over to 64: it sees an index without any.
	 */
	barrier_var(index);
	return call_class[index & (MAX_CALLS - 1)];
}

/* Whether somebody else keeps a thread from running, whatever system call it was in then. */
static __always_inline bool is_stopped(struct task_struct *task)
{
	if (task->__state & (TASK_STOPPED | TASK_TRACED))
		return 1;
	return bpf_core_field_exists(task->frozen) && BPF_CORE_READ_BITFIELD(task, frozen);
}

/* Why a thread leaves its CPU other than preempted. */
static __always_inline __u8 blocked_state(struct thread_slot *slot, struct task_struct *task, const struct registers *registers)
{
	if (is_stopped(task))
		return STATE_OTHER;
	if (BPF_CORE_READ_BITFIELD(task, in_iowait))
		return STATE_IO;
	if (slot->kernel_lock)
		return STATE_LOCK;
	switch (class_of(registers->call)) {
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
	return STATE_NET;
}

/* How long a thread has been queued at this moment, of the time since it left its CPU: its run_delay grows when that is over. */
static __always_inline __u64 queued_so_far(const struct thread_slot *slot, struct task_struct *task,
					   const struct control *settings, __u64 now)
{
	__u64 since;

	if (!scheduler_keeps_queues(task) || !task->sched_info.last_queued || !settings->queue_clock)
		return 0;
	since = task->sched_info.last_queued + settings->queue_clock;
	if (since < slot->left_at)
		since = slot->left_at;
	return since < now ? now - since : 0;
}

/*
 * When a thread that is queued was woken: the run queue's clock says so, whose distance from ours is known since the thread
 * last got a CPU. 0 where that is not known.
 */
static __always_inline __u64 queued_since(const struct thread_slot *slot, struct task_struct *task,
					  const struct control *settings, __u64 now)
{
	__u64 queued, arrived, since;

	/* Its first time on a CPU may have begun before we saw it. */
	if (!scheduler_keeps_queues(task) || slot->sleep < 2)
		return 0;
	/* Nor was its last time seen where the programs rested: then the clock of the queues must do, as it was last seen. */
	if (!slot->entered_at) {
		since = queued_so_far(slot, task, settings, now);
		return since ? now - since : 0;
	}
	queued = task->sched_info.last_queued;
	arrived = task->sched_info.last_arrival;
	if (!queued || queued < arrived)
		return 0;
	since = slot->entered_at + (queued - arrived);
	return since < slot->left_at ? slot->left_at : since > now ? now : since;
}

enum moment { STAYS = 0, LEAVES = 1, LEAVES_PREEMPTED = 2 };

/* Whether a thread may have switched without being seen. */
static __always_inline bool is_behind(const struct thread_slot *slot, const struct control *settings)
{
	return slot->epoch != settings->epoch || settings->resting;
}

/*
 * Switches were not seen for a while. What the thread did until the rest began the slot knows; how long it has run and has been
 * queued since, the scheduler. All else of the rest it was blocked, nobody saw by what.
 *
 *     left_at               rested_from                       now
 *        |------- known -------|-- ran, queued, or unseen -----|
 *
 * src/watch/rest.rs does the same sum for threads that are behind when the slots are read.
 *
 * True where the thread has run since it left its CPU: it is not in the wait any more that the slot speaks of. The
 * switch at this very moment is in the scheduler's counts already where the thread leaves its CPU. Only for who holds the slot and
 * has found it behind since: twice would count the rest twice.
 */
static __noinline bool catch_up(struct thread_slot *slot, struct task_struct *task, const struct control *settings, __u64 now,
				enum moment leaving)
{
	__u64 ran = task->se.sum_exec_runtime, total = 0, all, charged, queued, rest, known = 0, known_ran = 0, until;
	__u64 switches, preemptions;
	bool was_on_cpu = slot->state == STATE_CPU;
	bool moved = was_on_cpu || ran != slot->ran;

	slot->epoch = settings->epoch;
	run_delay(task, &total);
	total += queued_so_far(slot, task, settings, now);
	if (moved)
		slot->cpu = leaving == STAYS ? UNKNOWN_CPU : bpf_get_smp_processor_id();
	if (now > slot->left_at) {
		until = settings->rested_from > slot->left_at ? settings->rested_from : slot->left_at;
		if (until > now)
			until = now;
		all = now - slot->left_at;
		charged = ran - slot->ran;
		if (charged > all)
			charged = all;
		rest = all - charged;
		queued = total > slot->queued ? total - slot->queued : 0;
		if (queued > rest)
			queued = rest;
		rest -= queued;
		if (was_on_cpu) {
			if (slot->entered_at > slot->left_at)
				known = slot->entered_at - slot->left_at;
			known = known > queued ? known - queued : 0;
			if (until > slot->entered_at)
				known_ran = until - slot->entered_at;
		} else {
			if (slot->runnable_at > slot->left_at && slot->runnable_at < until)
				until = slot->runnable_at;
			known = until - slot->left_at;
		}
		if (slot->left_as == STATE_RUNQ)
			known = 0;
		if (known > rest)
			known = rest;
		slot->nanoseconds[STATE_CPU] += charged;
		slot->nanoseconds[STATE_RUNQ] += queued;
		slot->nanoseconds[slot->left_as & (STATES - 1)] += known;
		slot->unseen += rest - known;
		slot->unseen_ran += charged > known_ran ? charged - known_ran : 0;
		slot->left_at = now;
	}
	slot->ran = ran;
	slot->queued = total;
	slot->uncharged = 0;
	/* The end of what it fought for was not seen if it has run since, unless that began after the rest; or nobody missed it. */
	if (moved && slot->kernel_lock_epoch != settings->fights_epoch)
		slot->kernel_lock = 0;
	slot->kernel_lock_epoch = settings->fights_epoch;
	if (!moved)
		return 0;
	preemptions = task->nivcsw - slot->first_preemptions - (leaving == LEAVES_PREEMPTED);
	switches = preemptions + task->nvcsw - slot->first_voluntary - (leaving == LEAVES);
	if (preemptions > slot->preemptions)
		slot->preemptions = preemptions;
	/* The wait that the slot spoke of is over, whatever the counts say. */
	slot->sleep = switches > slot->sleep ? switches : slot->sleep + 1;
	slot->sampled = 0;
	slot->waker_kind = WAKER_UNKNOWN;
	slot->waker = 0;
	/* When it got its CPU nobody saw. */
	slot->entered_at = 0;
	return 1;
}

/* For whoever reads the slot of a thread that cannot be brought up to date now. */
static __always_inline void look_at(struct thread_slot *slot, struct task_struct *task, const struct control *settings, __u64 now)
{
	__u64 total = 0;

	run_delay(task, &total);
	slot->looked_ran = task->se.sum_exec_runtime;
	slot->looked_queued = total + queued_so_far(slot, task, settings, now);
	slot->looked_preemptions = task->nivcsw - slot->first_preemptions;
	slot->looked_switches = slot->looked_preemptions + task->nvcsw - slot->first_voluntary;
	slot->looked_at = now;
}

/*
 * 32 bits that nothing in the thread's doing decides: the nanoseconds of this moment and the thread, mixed (splitmix64, Steele
 * et al. 2014). The kernel's own generator costs five times as much, at every switch.
 */
static __always_inline __u32 coin(const struct thread_slot *slot)
{
	__u64 mixed = slot->left_at + ((__u64)slot->thread << 40);

	mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
	mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
	return mixed >> 32;
}

/* Throws the coin. Waits for the client are all alike: an eighth of the stacks will do for them. */
static __always_inline bool choose(struct thread_slot *slot, const struct control *settings)
{
	__u64 expected = slot->off_average[slot->state & (STATES - 1)], interval = settings->off_cpu_interval;
	__u64 probability;

	if (slot->state == STATE_NET)
		expected >>= 3;
	if (expected >= interval) {
		slot->probability = 0xffffffff;
		return 1;
	}
	/* A floor, so that one long wait of a thread that never waited long has no boundless weight. */
	if (expected < interval >> 9)
		expected = interval >> 9;
	/* interval is at most 2^31 (the program sees to it), so nothing overflows. */
	if (coin(slot) * interval >= expected << 32)
		return 0;
	probability = (expected << 32) / (interval | 1);
	if (probability > 0xffffffff)
		probability = 0xffffffff;
	slot->probability = probability;
	return 1;
}

/* Whether a thread that runs fights for the lock of the kernel that its slot speaks of. */
static __always_inline bool fights_for_kernel_lock(const struct thread_slot *slot, const struct control *settings)
{
	return slot->kernel_lock && slot->kernel_lock_epoch == settings->fights_epoch && settings->fights == FIGHTS_SEEN;
}

static __always_inline void tell_kernel_lock(struct record *record, const struct thread_slot *slot)
{
	record->lock = slot->kernel_lock;
	record->lock_operation = KERNEL_LOCK | slot->kernel_lock_kind;
}

#endif
