/*
 * A spin lock of the program's own, `planted_spin_lock`, with PAUSE and without sleep, held during half of a transaction.
 */
#include "stage.h"

_Alignas(64) atomic_int planted_spin_lock;

static OUT_OF_LINE void take_the_spin_lock(struct worker *me)
{
	long before;

	if (!atomic_exchange_explicit(&planted_spin_lock, 1, memory_order_acquire))
		return;
	before = now();
	do {
		while (atomic_load_explicit(&planted_spin_lock, memory_order_relaxed))
#if defined(__x86_64__)
			__builtin_ia32_pause();
#else
			__asm__ volatile("isb" ::: "memory");
#endif
	} while (atomic_exchange_explicit(&planted_spin_lock, 1, memory_order_acquire));
	me->lost += now() - before;
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
	return stage(count, arguments, CLOCK_THREAD_CPUTIME_ID);
}
