// Spends its time in the kernel and in the C library, in functions that both have names for.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char zeros[1 << 16];
static unsigned numbers[4096];

static int by_value(const void *a, const void *b) {
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    return (x > y) - (x < y);
}

int main(void) {
    int zero = open("/dev/zero", O_RDONLY);
    char text[64];
    unsigned seed = 1, sum = 0;
    struct timespec begun, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    do {
        for (int turn = 0; turn < 20; turn++) {
            if (read(zero, zeros, sizeof zeros) < 0)
                return 1;
            sum += (unsigned)getppid();
        }
        for (unsigned place = 0; place < 4096; place++)
            numbers[place] = seed = seed * 1664525 + 1013904223;
        qsort(numbers, 4096, sizeof *numbers, by_value);
        for (int turn = 0; turn < 200; turn++)
            sum += (unsigned)snprintf(text, sizeof text, "%d %f %s", turn, turn / 7.0, "words");
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000 < 900);
    return sum == 7;
}
