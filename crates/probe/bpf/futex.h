/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which futex a thread waits for, in which of the system calls, and who owns it (man 2 futex, include/uapi/linux/futex.h).
 */
#ifndef SCALEPROF_FUTEX_H
#define SCALEPROF_FUTEX_H

#include "stacks.h"

/* The system calls of futex2; these numbers are the same on all architectures. */
#define CALL_FUTEX_WAITV 449
#define CALL_FUTEX_WAIT 455

/* Operations of futex(2) without the flags FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME. */
#define FUTEX_LOCK_PI_OPERATION 6
#define FUTEX_WAIT_BITSET_OPERATION 9
#define FUTEX_LOCK_PI2_OPERATION 13
#define FUTEX_OPERATION 0x7f

/* A word that names its owner; the kernel sets the bit when somebody waits for it. */
#define FUTEX_HAS_WAITERS 0x80000000u
#define FUTEX_OWNER 0x3fffffffu

/* One of the futexes that futex_waitv(2) waits for (struct futex_waitv). */
struct one_of_many {
	__u64 value;
	__u64 address;
	__u32 flags;
	__u32 reserved;
};

struct futex_wait {
	__u64 address;
	__u32 operation;
};

/*
 * What the call says that a thread is in. futex_wait(2) does what FUTEX_WAIT_BITSET does. Of futex_waitv(2) the address is that of
 * its list of futexes, which only the thread's own memory holds: see first_of_many(); the operation is the call's number.
 */
static __always_inline struct futex_wait futex_wait_of(const struct registers *registers)
{
	struct futex_wait wait = {.address = registers->arguments[0]};

	if (registers->call == CALL_FUTEX_WAITV)
		wait.operation = CALL_FUTEX_WAITV;
	else if (registers->call == CALL_FUTEX_WAIT)
		wait.operation = FUTEX_WAIT_BITSET_OPERATION;
	else
		wait.operation = registers->arguments[1] & FUTEX_OPERATION;
	return wait;
}

/* Who waits for many is told to wait for the first. Of the thread that runs. */
static __always_inline void first_of_many(struct futex_wait *wait)
{
	struct one_of_many first = {};

	if (wait->operation != CALL_FUTEX_WAITV)
		return;
	bpf_probe_read_user(&first, sizeof(first), (const void *)wait->address);
	wait->address = first.address;
}

/*
 * The owner, where the futex is a glibc mutex (nptl: struct __pthread_mutex_s { int lock; unsigned count; int owner; }). 0 where it is
 * none, or nobody holds it any more. src/watch/futex.rs does the same for threads that were found asleep.
 */
static __always_inline __u32 futex_owner(const struct futex_wait *wait)
{
	bool names_owner = wait->operation == FUTEX_LOCK_PI_OPERATION || wait->operation == FUTEX_LOCK_PI2_OPERATION;
	__u32 words[3] = {};

	/* A futex with priority inheritance need not be a mutex: its word is all that the kernel asks for. */
	if (names_owner) {
		bpf_probe_read_user(words, sizeof(words[0]), (const void *)wait->address);
		return words[0] & FUTEX_OWNER;
	}
	if (bpf_probe_read_user(words, sizeof(words), (const void *)wait->address))
		return 0;
	/*
	 * 2: locked, with waiters. 1: let go and taken again while this thread was on its way to sleep, by somebody who has not been
	 * told yet that others wait. A robust mutex holds its owner in both places.
	 */
	if (words[0] == 1 || words[0] == 2 || words[0] == (words[2] | FUTEX_HAS_WAITERS))
		return words[2];
	return 0;
}

#endif
