/*
 * A fight for memory: threads allocate and free pieces that glibc keeps for no thread (over the 1032 bytes of its per-thread
 * cache), from one arena with one lock. They do not touch the pieces: lines that move from CPU to CPU with the memory would be another
 * disease.
 */
#include "stage.h"
#include <malloc.h>

#define PIECES 64

static OUT_OF_LINE void build_a_result(struct worker *me)
{
	char *pieces[PIECES];

	for (int piece = 0; piece < PIECES; piece++) {
		me->sum = compute(me->sum, 20);
		pieces[piece] = malloc(1100 + me->sum % 4096);
		if (!pieces[piece])
			exit(5);
	}
	for (int piece = 0; piece < PIECES; piece++)
		free(pieces[piece]);
	__asm__ volatile("");
}

static OUT_OF_LINE void transaction(struct worker *me)
{
	for (int row = 0; row < 10; row++)
		build_a_result(me);
}

int main(int count, char **arguments)
{
	/* One arena, which never gives memory back: the kernel has no part in it. */
	if (!mallopt(M_ARENA_MAX, 1) || !mallopt(M_TRIM_THRESHOLD, 1 << 30) || !mallopt(M_MMAP_THRESHOLD, 1 << 25) ||
	    !mallopt(M_TOP_PAD, 64 << 20))
		return 6;
	return stage(count, arguments, NO_CLOCK);
}
