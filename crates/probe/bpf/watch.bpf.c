// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the threads of one process do, all the time.
 *
 * Time is exact: each time a thread of the watched process leaves its CPU, the time since it last did is shared among its
 * states (close_interval), in a slot of that thread that the program reads through shared memory; no event is sent for it.
 *
 * Stacks are samples. On a CPU a timer takes them. Off the CPU a thread that leaves it throws a coin: with probability
 *
 *     p = min(1, average length of this thread's recent waits in the same state / off_cpu_interval)
 *
 * its stack is taken, and the wait counts length / p. p is fixed before the length is known, so sums are unbiased whatever
 * the waits are like (Horvitz and Thompson 1952), threads that alternate long and short waits included; and because long
 * sleepers are nearly always taken and short waits rarely, each stack stands for about the same time.
 *
 * Where there are so many switches that seeing them all would be felt, the programs at switches and wake-ups rest in between,
 * taken out of the kernel's way. The scheduler's own sums go on: time on a CPU and in run queues stays exact, and what a thread
 * was blocked by in a rest is concluded from what was seen of it (catch_up, src/watch/rest.rs).
 */
#include <linux/types.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <stdbool.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "thread_iterator.h"
#include "holders.h"
#include "wakers.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The state at this moment, not the one that it left with: sched_waking comes before it changes, and may have come already. */
static __always_inline bool being_woken(const struct task_struct *task)
{
	__u32 state = task->__state;

	return state == TASK_RUNNING || state == TASK_WAKING;
}

/* A thread that is up to date gets a CPU. */
static __always_inline void arrive(struct thread_slot *slot, __u64 now)
{
	struct scratch *scratch;
	__u16 cpu = bpf_get_smp_processor_id();

	/* In this order: see mark_queue_clock(). */
	*(volatile __u8 *)&slot->state = STATE_CPU;
	*(volatile __u64 *)&slot->entered_at = now;
	if (slot->cpu != cpu) {
		/* Where it was before a rest does not tell how often it moved since. */
		if (slot->cpu != UNKNOWN_CPU)
			slot->migrations++;
		slot->cpu = cpu;
	}
	if (!slot->sampled)
		return;
	slot->sampled = 0;
	scratch = scratch_for(SCRATCH_SWITCH);
	if (!scratch)
		return;
	clear(&scratch->record);
	scratch->record.kind = RECORD_WAKE;
	scratch->record.thread = slot->thread;
	scratch->record.time = now;
	scratch->record.sleep = slot->sleep;
	scratch->record.runnable_at = slot->runnable_at;
	scratch->record.waker_kind = slot->waker_kind;
	scratch->record.other = slot->waker;
	if (slot->from_start) {
		/* It may have woken before anybody walked its stack. */
		scratch->record.ending = END_NOT_TAKEN;
		scratch->record.state = slot->left_as;
		scratch->record.probability = slot->probability;
		scratch->record.lock = slot->left_at;
	}
	send(scratch);
}

/*
 * A thread that leaves its CPU was never seen to get it: some kernels do not tell of every switch (one was met that tells of none
 * away from certain threads). The scheduler's account says how long ago it was.
 */
static __always_inline void arrived_unseen(struct thread_slot *slot, struct task_struct *task, __u64 now)
{
	__u64 at = now - (task->se.sum_exec_runtime - slot->ran), queued = 0;

	if (at > now || at < slot->left_at)
		at = slot->left_at;
	if (slot->sampled && !slot->runnable_at && run_delay(task, &queued) && queued > slot->queued) {
		slot->runnable_at = at - (queued - slot->queued);
		if (slot->runnable_at > at || slot->runnable_at < slot->left_at)
			slot->runnable_at = slot->left_at;
	}
	arrive(slot, at);
}

/* The beginning of a wait that was chosen; its stack is in the scratch already. Gives the owner of the futex that it is for. */
static __always_inline __u32 send_sleep(struct scratch *scratch, struct thread_slot *slot, const struct registers *registers, __u64 now)
{
	struct futex_wait futex = {};
	__u32 owner = 0;

	scratch->record.kind = RECORD_SLEEP;
	scratch->record.state = slot->state;
	scratch->record.thread = slot->thread;
	scratch->record.time = now;
	scratch->record.sleep = slot->sleep;
	scratch->record.probability = slot->probability;
	if (slot->kernel_lock) {
		tell_kernel_lock(&scratch->record, slot);
	} else if (slot->state == STATE_LOCK) {
		futex = futex_wait_of(registers);
		first_of_many(&futex);
		owner = foreign_names ? 0 : futex_owner(&futex);
		scratch->record.lock = futex.address;
		scratch->record.lock_operation = futex.operation;
		scratch->record.other = owner;
	}
	slot->lock = futex.address;
	slot->lock_operation = futex.operation;
	add(COUNT_SLEEP_STACKS, 1);
	send(scratch);
	return owner;
}

static __always_inline void leave_cpu(void *context, struct task_struct *task, bool preempted, __u64 now)
{
	struct thread_slot *slot = slot_of(task->pid);
	struct control *settings = control();
	struct registers registers;
	struct scratch *scratch;
	__u32 owner = 0;
	__u8 state;

	/* What was seen ends sharply where a rest begins. */
	if (!settings || settings->resting)
		return;
	if (!slot)
		slot = new_slot(task, now, STATE_CPU);
	if (!slot)
		return;
	user_registers(&registers, task);
	if (!hold(slot))
		return;
	if (is_behind(slot, settings)) {
		catch_up(slot, task, settings, now, preempted ? LEAVES_PREEMPTED : LEAVES);
	} else {
		if (slot->state != STATE_CPU)
			arrived_unseen(slot, task, now);
		close_interval(slot, task, now, 1);
	}
	slot->seen_switches++;
	if (preempted) {
		state = STATE_RUNQ;
		slot->preemptions++;
		slot->runnable_at = now;
	} else {
		/*
		 * Who goes to sleep spins for nothing: the end of that was missed, in an interrupt within an interrupt. And while fights
		 * are not seen, nor is the end of one that was.
		 */
		if (slot->kernel_lock_kind & LCB_F_SPIN || settings->fights == FIGHTS_UNSEEN)
			slot->kernel_lock = 0;
		state = blocked_state(slot, task, &registers);
		/* Counted here, where switches are: what is counted in a stint stands for so many of those that nobody saw. */
		if (registers.call < 0 && !is_stopped(task))
			slot->fault_waits++;
		if (state == STATE_NET)
			slot->net_waits++;
		/* It sleeps already, as far as the scheduler goes; another CPU may just be waking it. */
		slot->runnable_at = being_woken(task) ? now : 0;
	}
	slot->state = state;
	slot->left_as = state;
	slot->sleep++;
	slot->waker_kind = WAKER_UNKNOWN;
	slot->waker = 0;
	slot->from_start = 0;
	keep_registers(slot, &registers);
	slot->sampled = settings->enabled && choose(slot, settings);
	let_go(slot);
	if (!slot->sampled && !slot->wanted_by)
		return;

	scratch = scratch_for(SCRATCH_SWITCH);
	if (!scratch)
		return;
	clear(&scratch->record);
	take_user_stack(scratch, &registers);
	if (slot->sampled) {
		take_kernel_stack(scratch, context);
		owner = send_sleep(scratch, slot, &registers, now);
	}
	if (slot->wanted_by)
		send_wanted(scratch, slot, settings, state, now);
	if (owner && owner != slot->thread)
		send_owner(slot->thread, owner, slot->sleep, now);
}

static __always_inline void enter_cpu(struct task_struct *task, __u64 now)
{
	struct thread_slot *slot = slot_of(task->pid);
	struct control *settings = control();

	if (!settings || settings->resting)
		return;
	if (!slot) {
		new_slot(task, now, STATE_CPU);
		return;
	}
	if (is_behind(slot, settings) && hold(slot)) {
		if (is_behind(slot, settings))
			catch_up(slot, task, settings, now, STAYS);
		let_go(slot);
	}
	/* Before the other marks: the scheduler still knows since when it was queued. */
	if (slot->sampled && !slot->runnable_at)
		slot->runnable_at = queued_since(slot, task, settings, now);
	arrive(slot, now);
}

static __always_inline int switched(void *context, bool preempted, struct task_struct *previous, struct task_struct *next,
				    bool state_known, __u32 state)
{
	bool leaves = (__u32)previous->tgid == watched, enters = (__u32)next->tgid == watched;
	__u64 now;

	if (!leaves && !enters)
		return 0;
	now = bpf_ktime_get_ns();
	if (leaves) {
		/* Without the state: a thread that is being woken on another CPU just now looks as if it still ran. */
		if (!state_known)
			state = previous->__state;
		leave_cpu(context, previous, preempted || state == TASK_RUNNING, now);
	}
	if (enters)
		enter_cpu(next, now);
	return 0;
}

SEC("tp_btf/sched_switch")
int on_switch(unsigned long long *ctx)
{
	if (has_previous_state)
		return switched(ctx, (bool)ctx[0], (void *)ctx[1], (void *)ctx[2], 1, (__u32)ctx[3]);
	return switched(ctx, (bool)ctx[0], (void *)ctx[1], (void *)ctx[2], 0, 0);
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_new, struct task_struct *task)
{
	if ((__u32)task->tgid == watched)
		new_slot(task, bpf_ktime_get_ns(), STATE_RUNQ);
	return 0;
}

/*
 * When a thread is woken and by whom, where its wait was chosen: this one runs where the waker is. Of the others the scheduler
 * itself keeps how long they were queued; where it does not, the time is marked here.
 */
SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	struct task_struct *waker;
	struct registers registers;
	struct control *settings;
	struct thread_slot *slot;
	struct scratch *scratch;

	if ((__u32)task->tgid != watched)
		return 0;
	slot = slot_of(task->pid);
	if (!slot || (!slot->sampled && scheduler_keeps_queues(task)))
		return 0;
	settings = control();
	/* Behind, it may be another wait by now than the one that was chosen. */
	if (!settings || settings->resting || (is_behind(slot, settings) && task->se.sum_exec_runtime != slot->ran))
		return 0;
	slot->runnable_at = bpf_ktime_get_ns();
	if (!slot->sampled || slot->state == STATE_CPU || slot->state == STATE_RUNQ)
		return 0;
	waker = (void *)bpf_get_current_task_btf();
	user_registers(&registers, waker);
	slot->waker_kind = waker_of(slot, waker, &registers);
	if (slot->waker_kind != WAKER_SAME_PROCESS && slot->waker_kind != WAKER_OTHER_PROCESS)
		return 0;
	slot->waker = waker->pid;
	if (slot->waker_kind != WAKER_SAME_PROCESS)
		return 0;
	scratch = scratch_for(SCRATCH_SWITCH);
	if (!scratch)
		return 0;
	clear(&scratch->record);
	scratch->record.kind = RECORD_WAKER;
	scratch->record.thread = slot->thread;
	scratch->record.other = slot->waker;
	scratch->record.sleep = slot->sleep;
	scratch->record.time = slot->runnable_at;
	take_user_stack(scratch, &registers);
	add(COUNT_OTHER_STACKS, 1);
	send(scratch);
	return 0;
}

/* For longer than anybody holds a slot who does not lose its CPU with it. */
#define MOST_TRIES 400

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct control *settings = control();
	struct thread_slot *slot;
	__u32 thread, *place;
	bool held = 0, behind = 0;
	__u64 now;

	if ((__u32)task->tgid != watched)
		return 0;
	slot = slot_of(task->pid);
	if (!slot || !settings)
		return 0;
	now = bpf_ktime_get_ns();
	thread = slot->thread;
	/* Who holds it goes through the threads. Where that takes long, src/watch/threads.rs tells the last stint. */
	for (int i = 0; i < MOST_TRIES; i++) {
		/* Left by a jump: before Linux 6.7 the verifier refuses a loop whose end runs into its beginning (src/watch/control_flow_tests.rs). */
		held = hold(slot);
		if (held)
			break;
	}
	if (held) {
		/* It runs: the scheduler's account of this stint is up to a tick behind. */
		behind = is_behind(slot, settings);
		if (behind) {
			catch_up(slot, task, settings, now, STAYS);
		} else {
			if (slot->state != STATE_CPU)
				arrived_unseen(slot, task, now);
			close_interval(slot, task, now, 0);
		}
	}
	slot->ended_at = now;
	bpf_probe_read_kernel_str(slot->name, sizeof(slot->name), &task->comm);
	if (held)
		let_go(slot);
	place = place_of(thread);
	if (place)
		*place = held ? *place | SLOT_OF_ENDING : 0;
	/* Last: its reader gives the slot to others. */
	*(volatile __u8 *)&slot->ended = !held ? ENDED : behind ? ENDS_UNSEEN : ENDS;
	return 0;
}

/*
 * A thread that had told its end is gone, a grace period of RCU ago: what it ran on the CPU in between only the scheduler knows. That
 * is some microseconds mostly, and a good part of the time of a thread that lives for a moment; the last one of a process may give back
 * all its memory there. What it waited for in between is nowhere.
 */
SEC("tp_btf/sched_process_free")
int BPF_PROG(on_free, struct task_struct *task)
{
	__u32 thread = task->pid, number, *place;
	__u64 ran, rest, seen = 0;
	struct thread_slot *slot;

	if ((__u32)task->tgid != watched)
		return 0;
	place = place_of(thread);
	if (!place)
		return 0;
	number = *(volatile __u32 *)place;
	if (!(number & SLOT_OF_ENDING) || __sync_val_compare_and_swap(place, number, 0) != number)
		return 0;
	slot = slot_at((number & ~SLOT_OF_ENDING) - 1);
	/* Its reader may have lost patience and given the slot to another: who holds it knows. */
	if (!slot || !hold(slot))
		return 0;
	if (slot->thread == thread && (slot->ended == ENDS || slot->ended == ENDS_UNSEEN)) {
		ran = task->se.sum_exec_runtime;
		if (ran > slot->ran) {
			rest = ran - slot->ran;
			if (slot->ended == ENDS_UNSEEN) {
				/* The scheduler's account was up to a tick behind when it told its end: what is more was taken for a wait. */
				seen = slot->unseen < rest ? slot->unseen : rest;
				slot->unseen -= seen;
				slot->unseen_ran += rest;
			}
			slot->nanoseconds[STATE_CPU] += rest;
			slot->ended_at += rest - seen;
			slot->left_at = slot->ended_at;
		} else {
			/* By our marks it had a CPU for longer than the scheduler charges it with. */
			slot->not_its_own += slot->ran - ran;
		}
		slot->ran = ran;
		*(volatile __u8 *)&slot->ended = ENDED;
	}
	let_go(slot);
	return 0;
}

/* The kernel's own locks, where it tells of them (Linux 5.19): only those that are fought for come by here. */
static __always_inline struct thread_slot *current_slot(void)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();

	return (__u32)task->tgid == watched ? slot_of(task->pid) : 0;
}

SEC("tp_btf/contention_begin")
int on_contention(unsigned long long *ctx)
{
	struct thread_slot *slot = current_slot();
	struct control *settings = control();
	__u32 kind = ctx[1];

	add(COUNT_FIGHTS, 1);
	/* On its way to sleep for one lock, or in an interrupt, it may spin for another for a moment. */
	if (!slot || !settings || (kind == LCB_F_SPIN && fights_for_kernel_lock(slot, settings)))
		return 0;
	if (!(kind & LCB_F_SPIN))
		add(COUNT_SLEEPING_FIGHTS, 1);
	slot->kernel_lock = ctx[0];
	slot->kernel_lock_kind = kind;
	slot->kernel_lock_epoch = settings->fights_epoch + (settings->fights == FIGHTS_GET_READY);
	return 0;
}

SEC("tp_btf/contention_end")
int on_contention_end(unsigned long long *ctx)
{
	struct thread_slot *slot = current_slot();

	if (slot && slot->kernel_lock == ctx[0])
		slot->kernel_lock = 0;
	return 0;
}

/* The timer. It takes the stack of whatever runs, if it is one of the watched threads. */
SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct control *settings = control();
	struct registers registers = {};
	struct thread_slot *slot;
	struct scratch *scratch;
	bool in_kernel;

	if ((__u32)task->tgid != watched || !settings || !settings->enabled)
		return 0;
	scratch = scratch_for(SCRATCH_TIMER);
	if (!scratch)
		return 0;
	clear(&scratch->record);
	scratch->record.kind = RECORD_CPU;
	scratch->record.state = STATE_CPU;
	scratch->record.thread = task->pid;
	scratch->record.time = bpf_ktime_get_ns();
#if defined(__TARGET_ARCH_x86)
	in_kernel = !(ctx->regs.cs & 3);
	registers.pc = ctx->regs.rip;
	registers.sp = ctx->regs.rsp;
	registers.fp = ctx->regs.rbp;
#elif defined(__TARGET_ARCH_arm64)
	in_kernel = (ctx->regs.pstate & 0xf) != 0;
	registers.pc = ctx->regs.pc;
	registers.sp = ctx->regs.sp;
	registers.fp = ctx->regs.regs[29];
	registers.lr = ctx->regs.regs[30];
#endif
	if (in_kernel)
		user_registers(&registers, task);
	take_user_stack(scratch, &registers);
	slot = slot_of(task->pid);
	if (in_kernel) {
		take_kernel_stack(scratch, ctx);
		if (settings->fights != FIGHTS_SEEN)
			scratch->record.lock_operation = KERNEL_LOCK_UNSEEN;
		else if (slot && fights_for_kernel_lock(slot, settings))
			tell_kernel_lock(&scratch->record, slot);
	}
	add(COUNT_CPU_STACKS, 1);
	send(scratch);
	if (slot && slot->wanted_by)
		send_wanted(scratch, slot, settings, STATE_CPU, scratch->record.time);
	return 0;
}
