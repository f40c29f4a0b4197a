/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Where the owner of a futex is while another thread waits for it.
 */
#ifndef SCALEPROF_HOLDERS_H
#define SCALEPROF_HOLDERS_H

#include "threads.h"

/* Where the owner is now. Of one that runs no stack can be taken here: it is asked to show it, see send_wanted(). */
static __always_inline void send_owner(__u32 thread, __u32 owner, __u64 sleep, __u64 now)
{
	struct scratch *scratch = scratch_for(SCRATCH_SWITCH);
	struct thread_slot *slot = slot_of(owner);
	struct control *settings = control();
	struct registers registers = {};
	__u32 version;

	/* Where it stood before a rest says nothing of where it stands. */
	if (!scratch || !settings || !slot || slot->thread != owner || is_behind(slot, settings))
		return;
	version = slot->version;
	clear(&scratch->record);
	scratch->record.kind = RECORD_OWNER;
	scratch->record.thread = thread;
	scratch->record.other = owner;
	scratch->record.sleep = sleep;
	scratch->record.time = now;
	scratch->record.state = slot->state != STATE_CPU && slot->runnable_at ? STATE_RUNQ : slot->state;
	registers.pc = slot->pc;
	registers.sp = slot->sp;
	registers.fp = slot->fp;
#if defined(__TARGET_ARCH_arm64)
	registers.lr = slot->lr;
#endif
	if (slot->state == STATE_CPU || version & 1) {
		scratch->record.ending = END_NOT_TAKEN;
		*(volatile __u32 *)&slot->wanted_by = thread;
	} else {
		take_user_stack(scratch, &registers);
		/* It ran in between: what was read is no stack of one moment. */
		if (slot->version != version || slot->state == STATE_CPU) {
			scratch->record.user_frames = 0;
			scratch->record.ending = END_NOT_TAKEN;
		}
	}
	add(COUNT_OTHER_STACKS, 1);
	send(scratch);
}

/*
 * A thread ran when another began to wait for what it owned. Where it is as soon as anybody sees it, at its next sample or when it
 * leaves its CPU, that is where it holds it, if the futex still says that it does. Its stack is in the scratch already.
 */
static __always_inline void send_wanted(struct scratch *scratch, struct thread_slot *owner, const struct control *settings, __u8 state,
					__u64 now)
{
	__u32 thread = owner->wanted_by;
	struct thread_slot *waiter = slot_of(thread);
	struct futex_wait wait;

	owner->wanted_by = 0;
	if (!waiter || waiter->thread != thread || waiter->state != STATE_LOCK || !waiter->sampled || !waiter->lock ||
	    is_behind(waiter, settings))
		return;
	wait.address = waiter->lock;
	wait.operation = waiter->lock_operation;
	if (futex_owner(&wait) != owner->thread)
		return;
	scratch->record.kind = RECORD_OWNER;
	scratch->record.thread = thread;
	scratch->record.other = owner->thread;
	scratch->record.sleep = waiter->sleep;
	scratch->record.time = now;
	scratch->record.state = state;
	scratch->record.lock = 0;
	scratch->record.lock_operation = 0;
	/* As of owners that are asleep, where only the server's own functions are to be had. */
	scratch->record.kernel_frames = 0;
	add(COUNT_OTHER_STACKS, 1);
	send(scratch);
}

#endif
