/* Compiled with a frame pointer and without unwind rules, like code that a program makes while it runs. */
void without_rows(void (*inside)(void));

void without_rows(void (*inside)(void))
{
	inside();
	__asm__ volatile("");
}
