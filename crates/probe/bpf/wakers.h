/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Whether the thread in whose name another is woken has anything to do with it.
 *
 * An interrupt wakes in the name of whatever thread it found, in the midst of a system call too. The kernel's count of interrupts
 * under way stands where not every kernel lets programs look. So of each state only those are believed who can end it by a call.
 */
#ifndef SCALEPROF_WAKERS_H
#define SCALEPROF_WAKERS_H

#include "threads.h"

static __always_inline bool is_futex_call(const struct registers *registers)
{
	return class_of(registers->call) == CALL_FUTEX;
}

/* Who wakes the thread of a slot, of which the current thread and its registers are all that is to be seen. */
static __always_inline enum waker_kind waker_of(const struct thread_slot *slot, const struct task_struct *current,
						const struct registers *registers)
{
	bool is_sibling = (__u32)current->tgid == watched;

	if (current->flags & PF_KTHREAD || !current->pid || registers->call < 0)
		return WAKER_KERNEL;
	switch (slot->state) {
	case STATE_LOCK:
		/* A futex is only ever woken by a futex call; anything else was interrupted by a timer in the middle of its call. */
		if (!slot->kernel_lock && !is_futex_call(registers))
			return WAKER_KERNEL;
		break;
	case STATE_IO:
	case STATE_SLEEP:
		/* A disk or a timer does. */
		return WAKER_KERNEL;
	default:
		/* A sibling may have written into a pipe, or lent its name to a network card: nobody can tell. */
		if (is_sibling)
			return WAKER_UNKNOWN;
	}
	return is_sibling ? WAKER_SAME_PROCESS : WAKER_OTHER_PROCESS;
}

#endif
