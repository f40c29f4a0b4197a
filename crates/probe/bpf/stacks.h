/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Taking stacks and sending records: unwind.h on the tables, with the registers of a thread.
 */
#ifndef SCALEPROF_STACKS_H
#define SCALEPROF_STACKS_H

#include "tables.h"

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

/* include/uapi/asm-generic/unistd.h */
#define CALL_RT_SIGRETURN 139

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
	/* rt_sigreturn is the last instruction of its function: behind it another one may begin, as in the vDSO of Linux 6.12. */
	if (registers->call == CALL_RT_SIGRETURN)
		registers->pc -= 4;
#endif
}

/*
 * The registers with which a thread entered the kernel. One that ends gives its memory back (exit_mm() in kernel/exit.c) before the
 * kernel says that it ends, and may wait for a CPU in between: it has no user stack any more.
 */
static __always_inline void user_registers(struct registers *registers, struct task_struct *task)
{
	read_registers(registers, (void *)bpf_task_pt_regs((void *)task));
	if (!task->mm)
		registers->pc = registers->sp = 0;
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

#endif
