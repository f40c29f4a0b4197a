/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Threads as they are found by who goes through all of them: what they do that were not seen to begin it.
 */
#ifndef SCALEPROF_THREAD_ITERATOR_H
#define SCALEPROF_THREAD_ITERATOR_H

#include "threads.h"

/*
 * How far the clock of the scheduler's queues is from ours: told by a thread that was seen to get its CPU. One that just gets
 * one has the new time of the one clock and the old of the other; it is in STATE_CPU before it has the new. It may get one
 * and leave it again between two looks, where the host of a virtual machine takes this CPU meanwhile: both times are of one
 * arrival only where ours is the same before and after.
 */
static __always_inline void mark_queue_clock(struct thread_slot *slot, struct task_struct *task, struct control *settings)
{
	__u64 entered = *(volatile __u64 *)&slot->entered_at, arrived;

	if (!scheduler_keeps_queues(task) || !entered || entered <= slot->started || slot->sleep < 2)
		return;
	arrived = *(volatile unsigned long long *)&task->sched_info.last_arrival;
	if (*(volatile __u8 *)&slot->state != STATE_CPU && *(volatile __u64 *)&slot->entered_at == entered)
		settings->queue_clock = entered - arrived;
}

/* What a thread does that was not watched until now. A thread that moves at this very moment is set right by its next switch:
 * one interval may carry the wrong name. */
static __always_inline void stand_as_found(struct thread_slot *slot, struct task_struct *task)
{
	struct registers registers;
	struct futex_wait futex;

	user_registers(&registers, task);
	if (task->__state == TASK_RUNNING) {
		slot->state = STATE_RUNQ;
		slot->runnable_at = slot->left_at;
	} else {
		slot->state = blocked_state(slot, task, &registers);
		slot->runnable_at = 0;
	}
	slot->left_as = slot->state;
	keep_registers(slot, &registers);
	slot->from_start = 1;
	futex = futex_wait_of(&registers);
	slot->lock = slot->state == STATE_LOCK && !slot->kernel_lock ? futex.address : 0;
	slot->lock_operation = futex.operation;
}

/*
 * A thread that was queued while it was brought up to date may have got a CPU meanwhile: that CPU marked it as running in the slot
 * that was just written as it had been found before. It would pass for queued until its next switch, which a thread that
 * computes may not have for a second. The scheduler marks when a thread last got a CPU before it tells of the switch.
 */
static __always_inline void look_again(struct thread_slot *slot, struct task_struct *task, __u64 last_got_cpu)
{
	if (task->on_cpu || (task->se.exec_start && task->se.exec_start != last_got_cpu)) {
		slot->entered_at = bpf_ktime_get_ns();
		slot->state = STATE_CPU;
		/* The wait that was just chosen is over. */
		slot->sampled = 0;
	}
}

/* Brings a thread up to date that is behind and does not run. */
static __always_inline void find_again(struct thread_slot *slot, struct task_struct *task, const struct control *settings, __u64 now,
				       __u64 last_got_cpu)
{
	/* Where it is held, its CPU is at it. */
	if (!hold(slot))
		return;
	/* Its CPU may have been faster. */
	if (is_behind(slot, settings)) {
		if (catch_up(slot, task, settings, now, STAYS)) {
			stand_as_found(slot, task);
			slot->sampled = settings->enabled && choose(slot, settings);
			look_again(slot, task, last_got_cpu);
		} else if (task->__state == TASK_RUNNING) {
			slot->runnable_at = slot->left_at;
		}
	}
	let_go(slot);
}

/* A thread that has a slot from now on, and does not run. */
static __always_inline void find_first(struct thread_slot *slot, struct task_struct *task, __u64 last_got_cpu)
{
	if (!hold(slot))
		return;
	/* Its CPU may have seen it switch already. */
	if (slot->state != STATE_CPU && !slot->seen_switches) {
		stand_as_found(slot, task);
		slot->probability = 0xffffffff;
		slot->sampled = 1;
		look_again(slot, task, last_got_cpu);
	}
	let_go(slot);
}

/* A switch takes microseconds from the one mark to the other. */
#define LONGEST_SWITCH 1000000

/*
 * A switch that found the slot held, or that the kernel did not tell of, leaves the slot behind what the thread does: until its next one
 * it would pass for running while it sleeps, or for waiting while it runs.
 */
static __always_inline void set_right(struct thread_slot *slot, struct task_struct *task, __u64 now)
{
	__u64 entered = *(volatile __u64 *)&slot->entered_at, left = *(volatile __u64 *)&slot->left_at;
	bool runs = *(volatile __u8 *)&slot->state == STATE_CPU;
	__u64 since = runs ? entered : left;

	if (slot->ended || runs == !!task->on_cpu || since > now || now - since < LONGEST_SWITCH || !hold(slot))
		return;
	/* Nothing came between. */
	if (slot->entered_at == entered && slot->left_at == left && runs == (slot->state == STATE_CPU)) {
		/* How much of the time it had a CPU only the scheduler knows. */
		slot->entered_at = now;
		slot->sampled = 0;
		if (runs) {
			close_interval(slot, task, now, 1);
			stand_as_found(slot, task);
		} else {
			slot->state = STATE_CPU;
		}
	}
	let_go(slot);
}

/*
 * Runs over the threads, for whoever reads the slots: those that are new get one; those that are behind after a rest are
 * brought up to date, unless they run, which their next switch will do; of those that are queued it is marked since when.
 */
SEC("iter/task")
int find_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct control *settings = control();
	struct thread_slot *slot;
	__u64 now, last_got_cpu;

	if (!task || (__u32)task->tgid != watched || !settings)
		return 0;
	last_got_cpu = task->se.exec_start;
	now = bpf_ktime_get_ns();
	slot = slot_of(task->pid);
	if (!slot) {
		slot = new_slot(task, now, task->on_cpu ? STATE_CPU : STATE_RUNQ);
		if (slot)
			find_first(slot, task, last_got_cpu);
		return 0;
	}
	if (settings->resting || (is_behind(slot, settings) && task->on_cpu)) {
		look_at(slot, task, settings, now);
		return 0;
	}
	if (is_behind(slot, settings)) {
		find_again(slot, task, settings, now, last_got_cpu);
		return 0;
	}
	set_right(slot, task, now);
	mark_queue_clock(slot, task, settings);
	if (slot->state != STATE_CPU && !slot->runnable_at)
		slot->runnable_at = queued_since(slot, task, settings, now);
	return 0;
}

#endif
