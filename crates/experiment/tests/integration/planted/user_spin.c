/*
 * A spin lock of the program's own, `planted_spin_lock`, with PAUSE and without sleep, held during half of a transaction.
 */
#include "stage.h"

/* Turns by which the time of one is measured. */
#define MEASURED_TURNS 200000

_Alignas(64) atomic_int planted_spin_lock;
static double turn_nanoseconds;

/* Asking for the CPU time of a thread is a system call: turns are counted instead. */
static OUT_OF_LINE long wait_while_taken(long most)
{
	long turns = 0;

	while (turns < most && atomic_load_explicit(&planted_spin_lock, memory_order_relaxed)) {
#if defined(__x86_64__)
		__builtin_ia32_pause();
#else
		__asm__ volatile("isb" ::: "memory");
#endif
		turns++;
	}
	return turns;
}

static OUT_OF_LINE void take_the_spin_lock(struct worker *me)
{
	long turns = 0;

	while (atomic_exchange_explicit(&planted_spin_lock, 1, memory_order_acquire))
		turns += wait_while_taken(1L << 62);
	me->lost += (long)((double)turns * turn_nanoseconds);
}

static OUT_OF_LINE void transaction(struct worker *me)
{
	me->sum = compute(me->sum, 2000);
	take_the_spin_lock(me);
	me->sum = compute(me->sum, 2000);
	atomic_store_explicit(&planted_spin_lock, 0, memory_order_release);
}

int main(int count, char **arguments)
{
	long before;

	own_clock = CLOCK_THREAD_CPUTIME_ID;
	planted_spin_lock = 1;
	before = now();
	wait_while_taken(MEASURED_TURNS);
	turn_nanoseconds = (double)(now() - before) / MEASURED_TURNS;
	planted_spin_lock = 0;
	return stage(count, arguments, CLOCK_THREAD_CPUTIME_ID);
}
