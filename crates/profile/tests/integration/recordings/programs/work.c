// Functions that are called by two callers, and one that calls itself. With "children PROGRAM" it has two child processes, of which
// one becomes that program; with "other" it is that program.
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))

volatile unsigned long sink;

APART void inner(unsigned long turns) {
    for (unsigned long turn = 0; turn < turns; turn++)
        sink += turn ^ (sink >> 3);
}

APART void other(unsigned long turns) {
    for (unsigned long turn = 0; turn < turns; turn++)
        sink ^= turn + (sink << 1);
}

APART void first_caller(void) {
    inner(300000);
    other(100000);
    sink++;
}

APART void second_caller(void) {
    inner(600000);
    sink++;
}

APART void recursive(int depth) {
    char room[512];
    memset(room, depth, sizeof room);
    if (depth > 0)
        recursive(depth - 1);
    else
        second_caller();
    sink += (unsigned long)room[depth];
}

APART void only_in_other_program(void) {
    for (int turn = 0; turn < 150; turn++)
        inner(1000000);
    sink++;
}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "other") == 0) {
        only_in_other_program();
        return 0;
    }
    if (count > 2 && strcmp(arguments[1], "children") == 0) {
        if (fork() == 0) {
            execl(arguments[2], arguments[2], "other", (char *)NULL);
            return 1;
        }
        fork();
    }
    for (int turn = 0; turn < 300; turn++) {
        first_caller();
        recursive(8);
    }
    while (wait(NULL) > 0) {
    }
    return 0;
}
