/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the kernel's side and the program's side both know: the tables that they share and the records that travel from one
 * to the other. src/watch/layout.rs mirrors it; both compilers check the sizes.
 */
#ifndef SCALEPROF_LAYOUT_H
#define SCALEPROF_LAYOUT_H

/* States of threads, ends of walks and kinds of wakers: made from the crate vocabulary by build.rs. */
#include "words.h"

/* The most frames that are kept of one stack: server stacks are 15 to 40 deep. */
#define MAX_USER_FRAMES 128
#define MAX_KERNEL_FRAMES 64

/* Rows of the unwind tables are reached in chunks: an array map rounds its elements up to 8 bytes, a row has 4. */
#define ROWS_OF_CHUNK 1024

/* Mappings of one generation; the other half is filled while this one is in use. */
#define MAX_MAPPINGS 2048

/* The CPU of a thread that has run where nobody saw it. */
#define UNKNOWN_CPU 0xffff

/* What a system call waits for; the program fills a table by call number, so that no number stands in here. */
enum call_class {
	CALL_OTHER = 0,
	CALL_FUTEX = 1,
	CALL_DISK = 2,
	CALL_NET = 3,
	CALL_SLEEP = 4,
	/* A socket or a file: told by what the descriptor is. */
	CALL_DESCRIPTOR = 5,
	/* A socket, or nothing at all and only the time (poll, select). */
	CALL_POLL = 6,
	/* The same with the number of descriptors as the first argument (select). */
	CALL_SELECT = 7,
};
#define MAX_CALLS 512

/* binary::unwind::UnwindRow */
struct unwind_row {
	__u16 pc_low;
	__u16 rule;
};
_Static_assert(sizeof(struct unwind_row) == 4, "src/watch/layout.rs has another size");

/* binary::unwind::UnwindRule */
struct unwind_rule {
	__u8 cfa;
	__u8 fp;
	__u8 ra;
	__u8 reserved;
	__s32 cfa_offset;
	__s32 fp_offset;
	__s32 ra_offset;
};
_Static_assert(sizeof(struct unwind_rule) == 16, "src/watch/layout.rs has another size");

enum cfa_kind {
	CFA_INVALID = 0,
	CFA_OUTERMOST = 1,
	CFA_STACK_POINTER = 2,
	CFA_FRAME_POINTER = 3,
	CFA_PLT = 4,
	CFA_SIGNAL_FRAME = 5,
	CFA_DEREFERENCED_STACK_POINTER = 6,
	CFA_DEREFERENCED_FRAME_POINTER = 7,
	CFA_UNSUPPORTED = 8,
	CFA_REGISTER = 9,
};

enum saved_kind {
	SAVED_SAME = 0,
	SAVED_AT_CFA = 1,
	SAVED_UNDEFINED = 2,
	SAVED_IN_REGISTER = 3,
	SAVED_AT_FRAME_POINTER = 4,
	SAVED_UNSUPPORTED = 5,
};

/* Rows of one 64 KiB page of code. */
struct page_rows {
	__u32 first;
	__u32 count;
};
_Static_assert(sizeof(struct page_rows) == 8, "src/watch/layout.rs has another size");

/* One mapped file's tables. */
struct code_object {
	__u32 first_page; /* address >> 16 of its first page */
	__u32 page_count;
	__u32 pages;	  /* index of its first page_rows */
	__u32 rules;	  /* index of its first rule */
};
_Static_assert(sizeof(struct code_object) == 16, "src/watch/layout.rs has another size");

/* One executable mapping of the process, sorted by start. */
struct mapping {
	__u64 start;
	__u64 end;
	__u64 bias; /* address in memory less address in the file */
	__u32 object; /* NO_OBJECT where its file has no rules */
	__u32 reserved;
};
_Static_assert(sizeof(struct mapping) == 32, "src/watch/layout.rs has another size");
#define NO_OBJECT 0xffffffffu

/* What the program may change while the probe runs. */
struct control {
	__u32 generation; /* which half of the mappings counts */
	__u32 mapping_count[2];
	__u32 enabled; /* stacks are taken */
	__u64 off_cpu_interval; /* one stack for so many nanoseconds off CPU, as expected */
	/*
	 * Where switches come too often to see each of them at a low price, the programs rest in between: see catch_up(). The
	 * epoch is the running number of the watching; a slot of an older one has not been looked after since the last rest.
	 */
	__u32 epoch;
	__u32 resting; /* enum resting: whether switches are not seen at this moment */
	__u64 rested_from; /* when the rest under way, or else the last one, began */
	__s64 queue_clock; /* our clock less that of the scheduler's queues, as last seen */
	/* The programs that see fights for the kernel's locks may stay when the others rest, and have a running number of their own. */
	__u32 fights_epoch;
	__u32 fights; /* enum fights: whether they are seen at this moment */
};
_Static_assert(sizeof(struct control) == 56, "src/watch/layout.rs has another size");

/*
 * One thread. Written by the CPU that switches it, which holds it when it leaves (see hold()), and by who goes through all threads
 * after a rest; by the one that wakes it only the waker and `runnable_at`. What a switch needs stands in the first three cache lines.
 *
 * The sums hold everything up to `left_at`. Of what came after, the slot only knows where it stands: see close_interval().
 */
struct thread_slot {
	__u32 thread; /* 0: free */
	__u32 version; /* odd while somebody holds it and writes */
	__u8 state; /* STATE_CPU while it has one, else the state in which it left its CPU */
	__u8 left_as; /* the state in which it last left its CPU */
	__u8 sampled; /* the sleep under way was chosen */
	__u8 waker_kind;
	__u16 cpu; /* where it last ran */
	__u8 ended; /* enum ended */
	__u8 from_start; /* asleep since before the programs were there, or were there again */
	__u64 left_at; /* when it last left its CPU */
	__u64 entered_at; /* when it last got one */
	__u64 runnable_at; /* when it was woken since it left its CPU, where that is known; 0: it was not, or is not known */
	__u64 ran; /* the scheduler's own sums at left_at: time on CPUs, */
	__u64 queued; /* and time in run queues */
	__s32 uncharged; /* time on CPU that the scheduler did not charge and we not yet: see close_interval() */
	__u32 wanted_by; /* a thread that began to wait for it while it ran: see send_wanted(); 0: none */

	__u64 nanoseconds[STATES];

	__u64 sleep; /* running number of the sleep under way: how often it left its CPU */
	/* Registers of user space when it last left its CPU. */
	__u64 pc;
	__u64 sp;
	__u64 fp;
	__u32 off_average[STATES]; /* ns from leaving a CPU in this state to having one again; 2^32 - 1 and more is one */

	__u64 preemptions;
	__u64 migrations;
	__u64 net_waits;
	__u64 fault_waits;
	__u64 not_its_own; /* ns on a CPU that the scheduler does not charge to it: interrupts, stolen by the host */
	__u32 waker;
	__u32 probability; /* of the choice, as a part of 2^32 - 1 */
	__u64 started;
	__u64 ended_at;
	char name[16];
	__u64 kernel_lock; /* the lock of the kernel that it fights for at this moment; 0: none */
	__u32 kernel_lock_kind; /* LCB_F_... of include/trace/events/lock.h */

	__u32 epoch; /* of control.epoch: when it was last looked after */
	__u64 unseen; /* ns neither on a CPU nor queued while the programs rested: blocked by what, nobody saw */
	__u64 unseen_ran; /* ns on a CPU while they rested; part of the sum of that state */
	/* The scheduler's own sums when the iterator last looked, for threads that could not be brought up to date. */
	__u64 looked_at;
	__u64 looked_ran;
	__u64 looked_queued;
	__u64 looked_switches;
	__u64 looked_preemptions;
	/* The scheduler's counts of switches when the slot was new. */
	__u64 first_voluntary;
	__u64 first_preemptions;
	__u64 seen_switches; /* of `sleep`: those that the programs saw */
	/* The futex of a wait that was chosen; of one that was found under way, what its call names: see futex_wait_of(). */
	__u64 lock;
	__u32 lock_operation;
	__u32 kernel_lock_epoch; /* of control.fights_epoch: when `kernel_lock` was last known to be fought for */
#if defined(__TARGET_ARCH_arm64)
	__u64 lr; /* a function that calls nobody has its return address in the link register alone */
	__u64 unused[7]; /* no slot shares a cache line with another */
#endif
};
#if defined(__TARGET_ARCH_arm64)
_Static_assert(sizeof(struct thread_slot) == 448, "src/watch/layout.rs has another size");
#else
_Static_assert(sizeof(struct thread_slot) == 384, "src/watch/layout.rs has another size");
#endif

/* How far a thread has come to its end. */
enum ended {
	LIVES = 0,
	ENDS = 1, /* it has told its end, and runs on to it: see on_free(). `ran` holds what it was charged with */
	ENDS_UNSEEN = 2, /* the same of one that was behind: part of `unseen` may be time on a CPU */
	ENDED = 3, /* nothing more is to come */
};

/* Which slot a thread has, by its number: index + 1, 0 for none. */
#define THREADS_OF_GROUP 2
/* Beside the number: the thread ends. No slot has such an index, so that who looks for the slot of a thread finds none. */
#define SLOT_OF_ENDING 0x80000000u
struct slot_numbers {
	__u32 slot[THREADS_OF_GROUP];
};

/* All but the first: nothing is seen. */
enum resting {
	WATCHES = 0,
	RESTS = 1,
	GETS_READY = 2, /* the programs are attached one after another; what they would see counts from the next epoch on */
};

/* Whether fights for the kernel's locks are seen. */
enum fights {
	FIGHTS_UNSEEN = 0,
	FIGHTS_SEEN = 1,
	FIGHTS_GET_READY = 2, /* as GETS_READY */
};

enum record_kind {
	RECORD_CPU = 1,	   /* a stack on CPU */
	RECORD_SLEEP = 2,  /* a stack that leaves its CPU */
	RECORD_WAKE = 3,   /* the end of such a sleep: no stack */
	RECORD_OWNER = 4,  /* stack of the owner of the futex that `thread` waits for; once more, later, if it ran at first */
	RECORD_WAKER = 5,  /* stack of the thread that wakes `thread` */
};

/* In `lock_operation`: the lock is one of the kernel's, and the rest of it its kind. */
#define KERNEL_LOCK 0x80000000u
/* In `lock_operation` of RECORD_CPU: it runs in the kernel, and while the programs rest nobody sees which locks it fights for. */
#define KERNEL_LOCK_UNSEEN 0x40000000u

/* Followed by user_frames and then kernel_frames addresses, innermost first. */
struct record {
	__u8 kind;
	__u8 state;
	__u8 ending; /* RECORD_WAKE: END_NOT_TAKEN where the wait began unseen; it is known since `lock` then */
	__u8 waker_kind;
	__u32 thread;
	__u32 cpu;
	__u32 other; /* owner of the futex, or waker */
	__u64 time;
	__u64 sleep;	   /* which sleep of this thread */
	__u64 runnable_at; /* RECORD_WAKE: when it could run; 0 where it always could */
	__u64 lock;	   /* address of the futex, or of the kernel's lock; RECORD_WAKE: see `ending` */
	__u32 lock_operation;
	__u32 probability;
	__u16 kernel_frames;
	__u16 user_frames;
	/* Bit i: user frame i + 1 was interrupted by a signal: it is no return address. Frame 0 never is one. */
	__u32 interrupted;
};
_Static_assert(sizeof(struct record) == 64, "src/watch/layout.rs has another size");

/* Counts of what was done and what was lost, by CPU. */
enum counted {
	COUNT_CPU_STACKS = 0,
	COUNT_SLEEP_STACKS = 1,
	COUNT_OTHER_STACKS = 2,
	COUNT_RING_FULL = 3,
	COUNT_NO_SLOT = 4,
	COUNT_NO_SCRATCH = 5,
	COUNT_FRAMES = 6,
	COUNT_FIGHTS = 7, /* for the kernel's locks, by whomever */
	COUNT_SLEEPING_FIGHTS = 8, /* those of the watched threads that sleep meanwhile */
	COUNT_MAX = 9,
};

#endif
