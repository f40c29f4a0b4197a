/*
 * A chain of two mutexes. Most threads want `planted_outer`; who has it wants `planted_inner` as well, which others keep while
 * they sleep. So nearly all wait for the outer one, and who holds that waits too: the time goes to who holds the inner one.
 */
#include "stage.h"

pthread_mutex_t planted_outer = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t planted_inner = PTHREAD_MUTEX_INITIALIZER;

static OUT_OF_LINE void keep_the_inner(void)
{
	pthread_mutex_lock(&planted_inner);
	usleep(2000);
	pthread_mutex_unlock(&planted_inner);
	__asm__ volatile("");
}

static OUT_OF_LINE void want_the_inner(struct worker *me)
{
	pthread_mutex_lock(&planted_inner);
	me->sum = compute(me->sum, 10000);
	pthread_mutex_unlock(&planted_inner);
	__asm__ volatile("");
}

static OUT_OF_LINE void want_the_outer(struct worker *me)
{
	pthread_mutex_lock(&planted_outer);
	want_the_inner(me);
	pthread_mutex_unlock(&planted_outer);
	__asm__ volatile("");
}

static OUT_OF_LINE void transaction(struct worker *me)
{
	/*
	 * Much longer than in want_the_inner(): who has let go of the outer one would else want it back just as the next lets go of
	 * it, and would be found waiting for what nobody holds at that moment.
	 */
	me->sum = compute(me->sum, 50000);
	if (me->number % 4 == 0)
		keep_the_inner();
	else
		want_the_outer(me);
}

int main(int count, char **arguments)
{
	return stage(count, arguments, NO_CLOCK);
}
