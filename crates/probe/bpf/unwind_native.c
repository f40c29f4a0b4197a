// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The unwinder of the BPF programs, compiled for this machine: tests replay recorded stacks with it, and the program walks
 * the stacks of threads that slept before the probe was there.
 */
#include <linux/types.h>

#include "layout.h"

/* The tables as the program holds them, and how to read the thread's memory. */
struct native_tables {
	const struct mapping *mappings;
	__u32 mapping_count;
	const struct code_object *objects;
	__u32 object_count;
	const struct page_rows *pages;
	__u32 page_count;
	const struct unwind_row *rows;
	__u32 row_count;
	const struct unwind_rule *rules;
	__u32 rule_count;
	void *reader;
	/* 0 when the word was read. */
	long (*read)(void *reader, __u64 address, __u64 *word);
};

static _Thread_local const struct native_tables *tables;

#define AT(array, count, index) ((index) < (count) ? &(array)[index] : 0)

static const struct mapping *native_mapping(__u32 index)
{
	return AT(tables->mappings, tables->mapping_count, index);
}

static const struct code_object *native_object(__u32 index)
{
	return AT(tables->objects, tables->object_count, index);
}

static const struct page_rows *native_page(__u32 index)
{
	return AT(tables->pages, tables->page_count, index);
}

static const struct unwind_row *native_row(__u32 index)
{
	return AT(tables->rows, tables->row_count, index);
}

static const struct unwind_rule *native_rule(__u32 index)
{
	return AT(tables->rules, tables->rule_count, index);
}

#define table_mapping(index) ((struct mapping *)native_mapping(index))
#define table_object(index) ((struct code_object *)native_object(index))
#define table_page(index) ((struct page_rows *)native_page(index))
#define table_row(index) ((struct unwind_row *)native_row(index))
#define table_rule(index) ((struct unwind_rule *)native_rule(index))

static long read_word(const void *context, __u64 address, __u64 *word)
{
	(void)context;
	return tables->read(tables->reader, address, word);
}

#if defined(__aarch64__)
#define UNWIND_AARCH64
#endif
#include "unwind.h"

/* Walks; gives the number of frames written. `frames` has room for MAX_USER_FRAMES. */
__u32 scaleprof_unwind(const struct native_tables *native, __u64 pc, __u64 sp, __u64 fp, __u64 lr, __u64 *frames,
		       __u32 *interrupted, __u8 *ending)
{
	struct walk walk = {.pc = pc, .sp = sp, .fp = fp, .lr = lr, .exact = 1, .mapping_count = native->mapping_count};

	tables = native;
	while (!walk.done) {
		if (walk.depth >= MAX_USER_FRAMES) {
			finish(&walk, END_TOO_DEEP);
			break;
		}
		frames[walk.depth++] = walk.pc;
		step_outwards(&walk);
	}
	*interrupted = walk.interrupted;
	*ending = walk.ending;
	return walk.depth;
}
