// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the threads of one process do, all the time.
 *
 * Time is exact: every switch and every wake-up of a thread of the watched process closes one interval and begins the next,
 * in a slot of that thread that the program reads through shared memory; no event is sent for it.
 *
 * Stacks are samples. On a CPU a timer takes them. Off the CPU a thread that leaves it throws a coin: with probability
 *
 *     p = min(1, average length of this thread's recent waits in the same state / off_cpu_interval)
 *
 * its stack is taken, and the wait counts length / p. p is fixed before the length is known, so sums are unbiased whatever
 * the waits are like (Horvitz and Thompson 1952), threads that alternate long and short waits included; and because long
 * sleepers are nearly always taken and short waits rarely, each stack stands for about the same time.
 */
#include <linux/types.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <stdbool.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "kernel.h"
#include "layout.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Set before loading. */
const volatile __u32 watched = 0;	   /* the process, as the initial PID namespace numbers it */
const volatile bool has_previous_state = 0; /* sched_switch tells the state that the thread left with (Linux 5.18) */
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

/* Which slot a thread has: found from the thread itself, moved with it, freed with it. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u32);
} slot_of_task SEC(".maps");

/* The same from its number, for the owners of locks. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} slot_of_number SEC(".maps");

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

/* ---- the tables, as unwind.h wants them ---- */

static __always_inline struct mapping *table_mapping(__u32 index)
{
	return bpf_map_lookup_elem(&mappings, &index);
}

static __always_inline struct code_object *table_object(__u32 index)
{
	return bpf_map_lookup_elem(&objects, &index);
}

static __always_inline struct page_rows *table_page(__u32 index)
{
	return bpf_map_lookup_elem(&pages, &index);
}

static __always_inline struct unwind_rule *table_rule(__u32 index)
{
	return bpf_map_lookup_elem(&rules, &index);
}

static __always_inline struct unwind_row *table_row(__u32 index)
{
	__u32 chunk_index = index / ROWS_OF_CHUNK;
	struct row_chunk *chunk = bpf_map_lookup_elem(&rows, &chunk_index);

	return chunk ? &chunk->rows[index % ROWS_OF_CHUNK] : 0;
}

static __always_inline long read_word(const void *context, __u64 address, __u64 *word)
{
	return bpf_probe_read_user(word, sizeof(*word), (const void *)address);
}

#if defined(__TARGET_ARCH_arm64)
#define UNWIND_AARCH64
#endif
#include "unwind.h"

/* ---- walking ---- */

struct registers {
	__u64 pc;
	__u64 sp;
	__u64 fp;
	__u64 lr;
	__s64 call; /* system call under way, -1 outside of one */
	__u64 arguments[3];
};

/* Global functions are verified once, on their own, and not again from each of their callers and turns of a loop. */
__noinline int walk_outwards(struct walk *walk)
{
	if (walk)
		step_outwards(walk);
	return 0;
}

/*
 * Fills the user part of a record. Memory is that of the thread that runs: any thread of the same process will do.
 */
__noinline int take_user_stack(struct scratch *scratch, const struct registers *registers)
{
	struct control *settings = control();
	struct walk walk = {};
	__u32 ending, depth = 0;
	__u64 *count;

	if (!scratch || !registers || !settings)
		return 0;
	walk.pc = registers->pc;
	walk.sp = registers->sp;
	walk.fp = registers->fp;
	walk.lr = registers->lr;
	walk.exact = 1;
	walk.mapping_base = settings->generation & 1 ? MAX_MAPPINGS : 0;
	walk.mapping_count = settings->generation & 1 ? settings->mapping_count[1] : settings->mapping_count[0];
	if (!registers->pc || !registers->sp) {
		finish(&walk, END_NO_USER_STACK);
	} else {
		for (depth = 0; depth < MAX_USER_FRAMES && !walk.done; depth++) {
			scratch->addresses[depth] = walk.pc;
			walk.depth = depth + 1;
			walk_outwards(&walk);
		}
		if (!walk.done)
			finish(&walk, END_TOO_DEEP);
	}
	ending = walk.ending;
	scratch->record.ending = ending;
	scratch->record.interrupted = walk.interrupted;
	scratch->record.user_frames = depth;
	add(COUNT_FRAMES, depth);
	count = bpf_map_lookup_elem(&endings, &ending);
	if (count)
		*count += 1;
	return 0;
}

static __always_inline void read_registers(struct registers *registers, const struct pt_regs___kernel *regs)
{
#if defined(__TARGET_ARCH_x86)
	registers->pc = regs->ip;
	registers->sp = regs->sp;
	registers->fp = regs->bp;
	registers->lr = 0;
	registers->call = regs->orig_ax;
	registers->arguments[0] = regs->di;
	registers->arguments[1] = regs->si;
	registers->arguments[2] = regs->dx;
#elif defined(__TARGET_ARCH_arm64)
	registers->pc = regs->pc;
	registers->sp = regs->sp;
	registers->fp = regs->regs[29];
	registers->lr = regs->regs[30];
	registers->call = regs->syscallno;
	registers->arguments[0] = regs->orig_x0;
	registers->arguments[1] = regs->regs[1];
	registers->arguments[2] = regs->regs[2];
#endif
}

/* The registers with which a thread entered the kernel. */
static __always_inline void user_registers(struct registers *registers, struct task_struct *task)
{
	read_registers(registers, (void *)bpf_task_pt_regs((void *)task));
}

static __always_inline struct scratch *scratch_for(enum scratch_use use)
{
	__u32 index = use;
	struct scratch *scratch = bpf_map_lookup_elem(&scratches, &index);

	if (!scratch)
		add(COUNT_NO_SCRATCH, 1);
	return scratch;
}

static __always_inline void clear(struct record *record)
{
	__builtin_memset(record, 0, sizeof(*record));
}

/* The kernel's part stands behind that of user space. */
static __always_inline void take_kernel_stack(struct scratch *scratch, void *context)
{
	__u32 user = scratch->record.user_frames;
	long bytes;

	if (user > MAX_USER_FRAMES)
		return;
	bytes = bpf_get_stack(context, &scratch->addresses[user], MAX_KERNEL_FRAMES * sizeof(__u64), 0);
	if (bytes > 0)
		scratch->record.kernel_frames = bytes / sizeof(__u64);
}

static __always_inline void send(struct scratch *scratch)
{
	__u32 which = bpf_get_smp_processor_id();
	__u64 frames = scratch->record.user_frames + scratch->record.kernel_frames;
	void *ring;

	if (frames > MAX_USER_FRAMES + MAX_KERNEL_FRAMES)
		frames = MAX_USER_FRAMES + MAX_KERNEL_FRAMES;
	scratch->record.cpu = which;
	which %= ring_count;
	ring = bpf_map_lookup_elem(&rings, &which);
	/* No wake-up: the reader comes by by itself, and the run queue's lock is held here. */
	if (!ring || bpf_ringbuf_output(ring, scratch, sizeof(struct record) + frames * sizeof(__u64), BPF_RB_NO_WAKEUP))
		add(COUNT_RING_FULL, 1);
}

/* ---- threads ---- */

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

static __always_inline void leave_cpu(void *context, struct task_struct *task, bool preempted, __u64 now)
{
	struct thread_slot *slot = slot_of(task);
	struct control *settings = control();
	struct registers registers;
	struct scratch *scratch;
	__u64 sleep, futex = 0;
	__u32 owner = 0, thread;
	__u8 state;

	if (!settings)
		return;
	if (!slot)
		slot = new_slot(task, now, STATE_CPU);
	if (!slot)
		return;
	user_registers(&registers, task);
	__sync_fetch_and_add(&slot->version, 1);
	account(slot, now);
	if (preempted) {
		slot->state = STATE_RUN_QUEUE;
		slot->preemptions++;
		slot->runnable_at = now;
	} else {
		slot->state = blocked_state(slot, task, &registers);
		slot->switches++;
		slot->runnable_at = 0;
	}
	state = slot->state;
	slot->left_as = state;
	sleep = ++slot->sleep;
	slot->sleep_began = now;
	slot->waker_kind = WAKER_UNKNOWN;
	slot->waker = 0;
	slot->from_start = 0;
	slot->pc = registers.pc;
	slot->sp = registers.sp;
	slot->fp = registers.fp;
	slot->sampled = settings->enabled && choose(slot, settings);
	__sync_fetch_and_add(&slot->version, 1);
	if (!slot->sampled)
		return;

	scratch = scratch_for(SCRATCH_SWITCH);
	if (!scratch)
		return;
	clear(&scratch->record);
	thread = slot->thread;
	scratch->record.kind = RECORD_SLEEP;
	scratch->record.state = state;
	scratch->record.thread = thread;
	scratch->record.time = now;
	scratch->record.sleep = sleep;
	scratch->record.probability = slot->probability;
	if (state == STATE_LOCK) {
		futex = registers.arguments[0];
		owner = futex_owner(futex);
		scratch->record.futex = futex;
		scratch->record.futex_operation = registers.arguments[1];
		scratch->record.other = owner;
	}
	take_user_stack(scratch, &registers);
	take_kernel_stack(scratch, context);
	add(COUNT_SLEEP_STACKS, 1);
	send(scratch);
	if (owner && owner != thread)
		send_owner(thread, owner, sleep, now);
}

static __always_inline void enter_cpu(struct task_struct *task, __u64 now)
{
	struct thread_slot *slot = slot_of(task);
	struct scratch *scratch;

	if (!slot) {
		new_slot(task, now, STATE_CPU);
		return;
	}
	__sync_fetch_and_add(&slot->version, 1);
	account(slot, now);
	slot->state = STATE_CPU;
	if (now > slot->sleep_began) {
		__u64 *average = &slot->off_average[slot->left_as & (STATES - 1)];

		*average += (now - slot->sleep_began) / 8 - *average / 8;
	}
	__sync_fetch_and_add(&slot->version, 1);
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
	send(scratch);
}

static __always_inline int switched(void *context, bool preempted, struct task_struct *previous, struct task_struct *next,
				    bool state_known, __u32 state)
{
	bool leaves = (__u32)previous->tgid == watched, enters = (__u32)next->tgid == watched;
	__u64 now;

	if (!leaves && !enters)
		return 0;
	now = bpf_ktime_get_ns();
	add(COUNT_SWITCHES, 1);
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

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *task)
{
	struct thread_slot *slot;
	__u64 now;

	if ((__u32)task->tgid != watched)
		return 0;
	slot = slot_of(task);
	if (!slot || slot->state == STATE_CPU || slot->state == STATE_RUN_QUEUE)
		return 0;
	now = bpf_ktime_get_ns();
	__sync_fetch_and_add(&slot->version, 1);
	account(slot, now);
	slot->state = STATE_RUN_QUEUE;
	slot->runnable_at = now;
	__sync_fetch_and_add(&slot->version, 1);
	add(COUNT_WAKEUPS, 1);
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_new, struct task_struct *task)
{
	if ((__u32)task->tgid == watched)
		new_slot(task, bpf_ktime_get_ns(), STATE_RUN_QUEUE);
	return 0;
}

/* Who wakes a thread whose wait was chosen. This one runs where the waker is; sched_wakeup may run elsewhere. */
SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	struct task_struct *waker;
	struct registers registers;
	struct thread_slot *slot;
	struct scratch *scratch;

	if ((__u32)task->tgid != watched)
		return 0;
	slot = slot_of(task);
	if (!slot || !slot->sampled || slot->state == STATE_CPU || slot->state == STATE_RUN_QUEUE)
		return 0;
	waker = (void *)bpf_get_current_task_btf();
	user_registers(&registers, waker);
	/* An interrupt wakes in the name of whatever thread it found: only a thread inside a system call is believed. */
	if (waker->flags & PF_KTHREAD || !waker->pid || registers.call < 0) {
		slot->waker_kind = WAKER_KERNEL;
		return 0;
	}
	slot->waker = waker->pid;
	if ((__u32)waker->tgid != watched) {
		slot->waker_kind = WAKER_OTHER_PROCESS;
		return 0;
	}
	/* A futex is only ever woken by a futex call; anything else was interrupted by a timer in the middle of its call. */
	if (slot->state == STATE_LOCK &&
	    (registers.call >= MAX_CALLS || call_class[registers.call & (MAX_CALLS - 1)] != CALL_FUTEX)) {
		slot->waker = 0;
		slot->waker_kind = WAKER_KERNEL;
		return 0;
	}
	slot->waker_kind = WAKER_SIBLING;
	scratch = scratch_for(SCRATCH_SWITCH);
	if (!scratch)
		return 0;
	clear(&scratch->record);
	scratch->record.kind = RECORD_WAKER;
	scratch->record.thread = slot->thread;
	scratch->record.other = slot->waker;
	scratch->record.sleep = slot->sleep;
	scratch->record.time = bpf_ktime_get_ns();
	take_user_stack(scratch, &registers);
	add(COUNT_OTHER_STACKS, 1);
	send(scratch);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct thread_slot *slot;
	__u64 now;
	__u32 thread;

	if ((__u32)task->tgid != watched)
		return 0;
	slot = slot_of(task);
	if (!slot)
		return 0;
	now = bpf_ktime_get_ns();
	thread = slot->thread;
	__sync_fetch_and_add(&slot->version, 1);
	account(slot, now);
	slot->ended_at = now;
	slot->ended = 1;
	bpf_probe_read_kernel_str(slot->name, sizeof(slot->name), &task->comm);
	__sync_fetch_and_add(&slot->version, 1);
	bpf_map_delete_elem(&slot_of_number, &thread);
	return 0;
}

/* Threads that were there before the probe. */
SEC("iter/task")
int find_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct registers registers;
	struct thread_slot *slot;
	__u64 now;
	__u8 state;

	if (!task || (__u32)task->tgid != watched || slot_of(task))
		return 0;
	now = bpf_ktime_get_ns();
	/* If it moves at this very moment its next switch sets it right: one interval may carry the wrong name. */
	state = task->on_cpu ? STATE_CPU : STATE_RUN_QUEUE;
	slot = new_slot(task, now, state);
	if (!slot)
		return 0;
	user_registers(&registers, task);
	if (state == STATE_RUN_QUEUE && task->__state != TASK_RUNNING) {
		slot->state = blocked_state(slot, task, &registers);
		slot->runnable_at = 0;
		slot->pc = registers.pc;
		slot->sp = registers.sp;
		slot->fp = registers.fp;
		slot->probability = 0xffffffff;
		slot->from_start = 1;
		slot->sleep = 1;
		slot->sampled = 1;
	}
	return 0;
}

/* The timer. It takes the stack of whatever runs, if it is one of the watched threads. */
SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct control *settings = control();
	struct registers registers = {};
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
	if (in_kernel)
		take_kernel_stack(scratch, ctx);
	add(COUNT_CPU_STACKS, 1);
	send(scratch);
	return 0;
}
