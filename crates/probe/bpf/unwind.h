/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The walk through a user stack by the rules of .eh_frame.
 *
 * The same text is compiled for the kernel's virtual machine (watch.bpf.c) and for this machine (unwind_native.c), where
 * tests replay recorded registers and stacks. Who includes it defines first:
 *
 *   read_word(context, address, u64 *)   one word of the thread's memory; 0 when it was read
 *   table_mapping(index), table_object(index), table_page(index), table_row(index), table_rule(index)
 *                                        pointers into the tables, or NULL
 *
 * The rules come from binary::unwind. Registers that a frame saved and that no later rule needs are not followed: a walk
 * needs the program counter, the stack pointer and the frame pointer, and on aarch64 the link register of the innermost
 * frame. References: System V ABI AMD64 3.2.2 and 3.7, DWARF 5 section 6.4, ELF for the Arm 64-bit Architecture.
 */
#ifndef SCALEPROF_UNWIND_H
#define SCALEPROF_UNWIND_H

#include "layout.h"

#ifndef UNWIND_INLINE
#define UNWIND_INLINE static __attribute__((always_inline)) inline
#endif

/* Where a walk stands. */
struct walk {
	__u64 pc;
	__u64 sp;
	__u64 fp;
	__u64 lr;
	const void *context;
	/* The half of the mappings that counts, and how many are in it. */
	__u32 mapping_base;
	__u32 mapping_count;
	__u32 depth;
	__u32 interrupted;
	__u8 ending;
	/* The frame is the innermost or a signal interrupted it: its pc is an instruction pointer, no return address. */
	__u8 exact;
	__u8 done;
	/* Some frame was left by its frame pointer, without a rule that says so. */
	__u8 guessed;
};

/* Pointer authentication codes stand in the upper bits of aarch64's return addresses. */
#if defined(UNWIND_AARCH64)
#define CODE_ADDRESS(address) ((address) & 0x0000ffffffffffffULL)
#else
#define CODE_ADDRESS(address) (address)
#endif

/* The index of the last of `count` (a power of two bounds it: `steps`) mappings that begins at or before pc. */
UNWIND_INLINE struct mapping *find_mapping(const struct walk *walk, __u64 pc)
{
	__u32 low = 0, length = walk->mapping_count;

	for (int step = 0; step < 12; step++) {
		__u32 half = length >> 1;
		struct mapping *middle;

		if (!half)
			break;
		middle = table_mapping(walk->mapping_base + low + half);
		if (middle && middle->start <= pc) {
			low += half;
			length -= half;
		} else {
			length = half;
		}
	}
	{
		struct mapping *found = walk->mapping_count ? table_mapping(walk->mapping_base + low) : 0;

		return found && found->start <= pc && pc < found->end ? found : 0;
	}
}

/* The rule that covers `address` of an object; every page begins with a row for its first byte. */
UNWIND_INLINE struct unwind_rule *find_rule(const struct code_object *object, __u64 address)
{
	__u64 page_number = (address >> 16) - object->first_page;
	__u16 wanted = address & 0xffff;
	struct page_rows *page;
	struct unwind_row *row;
	__u32 low, length;

	if (page_number >= object->page_count)
		return 0;
	page = table_page(object->pages + (__u32)page_number);
	if (!page || !page->count)
		return 0;
	low = page->first;
	length = page->count;
	for (int step = 0; step < 17; step++) {
		__u32 half = length >> 1;
		struct unwind_row *middle;

		if (!half)
			break;
		middle = table_row(low + half);
		if (middle && middle->pc_low <= wanted) {
			low += half;
			length -= half;
		} else {
			length = half;
		}
	}
	row = table_row(low);
	return row ? table_rule(object->rules + row->rule) : 0;
}

UNWIND_INLINE void finish(struct walk *walk, __u8 ending)
{
	walk->ending = ending == END_COMPLETE && walk->guessed ? END_FRAME_POINTER : ending;
	walk->done = 1;
}

/* Reads the registers that the kernel saved when it delivered a signal: of aarch64 the link register too, x30 behind x29. */
UNWIND_INLINE int leave_signal_frame(struct walk *walk, const struct unwind_rule *rule)
{
	__u64 sp, fp, pc;

	if (read_word(walk->context, walk->sp + (__s64)rule->cfa_offset, &sp) ||
	    read_word(walk->context, walk->sp + (__s64)rule->fp_offset, &fp) ||
	    read_word(walk->context, walk->sp + (__s64)rule->ra_offset, &pc))
		return -1;
#if defined(UNWIND_AARCH64)
	if (read_word(walk->context, walk->sp + (__s64)rule->fp_offset + 8, &walk->lr))
		return -1;
#endif
	walk->sp = sp;
	walk->fp = fp;
	walk->pc = pc;
	return 0;
}

/*
 * One frame outwards where no rule says how: code that was made while the program ran, or written in assembler. Where it keeps a frame
 * pointer, that points to the caller's and the return address, one above the other, on both architectures. It is believed if it
 * leads outwards and back into code that is known; else the walk ends as it would have.
 */
UNWIND_INLINE void follow_frame_pointer(struct walk *walk, __u8 otherwise)
{
	__u64 fp, pc;

	if (walk->fp < walk->sp || walk->fp & 7 || read_word(walk->context, walk->fp, &fp) ||
	    read_word(walk->context, walk->fp + 8, &pc))
		return finish(walk, otherwise);
	pc = CODE_ADDRESS(pc);
	if (!pc || !find_mapping(walk, pc - 1))
		return finish(walk, otherwise);
	walk->sp = walk->fp + 16;
	walk->fp = fp;
	walk->pc = pc;
	walk->exact = 0;
	walk->guessed = 1;
}

/* One frame outwards. Sets `done` at the end of the walk. */
UNWIND_INLINE void step_outwards(struct walk *walk)
{
	__u64 lookup = walk->exact ? walk->pc : walk->pc - 1;
	struct mapping *mapping = find_mapping(walk, lookup);
	struct code_object *object;
	struct unwind_rule *rule;
	__u64 cfa, fp = walk->fp, pc;

	if (!mapping)
		return follow_frame_pointer(walk, END_NO_MAPPING);
	object = table_object(mapping->object);
	rule = object ? find_rule(object, lookup - mapping->bias) : 0;
	if (!rule || rule->cfa == CFA_INVALID)
		return follow_frame_pointer(walk, END_NO_RULE);

	switch (rule->cfa) {
	case CFA_OUTERMOST:
		return finish(walk, END_COMPLETE);
	case CFA_STACK_POINTER:
		cfa = walk->sp + (__s64)rule->cfa_offset;
		break;
	case CFA_FRAME_POINTER:
		cfa = walk->fp + (__s64)rule->cfa_offset;
		break;
	case CFA_PLT:
		cfa = walk->sp + 8 + ((lookup & 15) >= (__u64)rule->cfa_offset ? 8 : 0);
		break;
	case CFA_DEREFERENCED_STACK_POINTER:
		if (read_word(walk->context, walk->sp + (__s64)rule->cfa_offset, &cfa))
			return finish(walk, END_UNREADABLE_MEMORY);
		break;
	case CFA_DEREFERENCED_FRAME_POINTER:
		if (read_word(walk->context, walk->fp + (__s64)rule->cfa_offset, &cfa))
			return finish(walk, END_UNREADABLE_MEMORY);
		break;
	case CFA_SIGNAL_FRAME:
		if (leave_signal_frame(walk, rule))
			return finish(walk, END_UNREADABLE_MEMORY);
		/* The interrupted frame's address is that of the next instruction to run. */
		if (walk->depth && walk->depth <= 32)
			walk->interrupted |= 1u << (walk->depth - 1);
		walk->exact = 1;
		return;
	default:
		return finish(walk, END_UNSUPPORTED_RULE);
	}

	if (rule->ra == SAVED_AT_CFA) {
		if (read_word(walk->context, cfa + (__s64)rule->ra_offset, &pc))
			return finish(walk, END_UNREADABLE_MEMORY);
	} else if ((rule->ra == SAVED_IN_REGISTER || rule->ra == SAVED_SAME) && walk->exact) {
		/* Only a frame that called nobody still has its return address in the register. */
		pc = walk->lr;
	} else if (rule->ra == SAVED_UNDEFINED) {
		return finish(walk, END_COMPLETE);
	} else {
		return finish(walk, END_UNSUPPORTED_RULE);
	}

	if (rule->fp == SAVED_AT_CFA) {
		if (read_word(walk->context, cfa + (__s64)rule->fp_offset, &fp))
			return finish(walk, END_UNREADABLE_MEMORY);
	} else if (rule->fp == SAVED_AT_FRAME_POINTER) {
		if (read_word(walk->context, walk->fp + (__s64)rule->fp_offset, &fp))
			return finish(walk, END_UNREADABLE_MEMORY);
	}

	pc = CODE_ADDRESS(pc);
	/* The stack grows down: every frame lies above the one that it called. An aarch64 leaf may have no frame at all. */
	if (cfa < walk->sp || (cfa == walk->sp && !(walk->exact && rule->ra != SAVED_AT_CFA)))
		return finish(walk, END_NO_PROGRESS);
	/* Threads whose first frame has no mark end in a null return address. */
	if (!pc)
		return finish(walk, END_COMPLETE);
	walk->pc = pc;
	walk->sp = cfa;
	walk->fp = fp;
	walk->exact = 0;
}

#endif
