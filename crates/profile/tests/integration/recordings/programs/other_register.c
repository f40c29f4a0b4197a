// A function that finds its caller from a register that is neither the stack pointer nor the frame pointer, as the dynamic linker's
// does that looks for a function, below functions that use this register for themselves.

#define APART __attribute__((noinline, noclone))

volatile unsigned long sink;

APART void inner(unsigned long turns) {
    for (unsigned long turn = 0; turn < turns; turn++)
        sink += turn ^ (sink >> 3);
}

// Keeps the register for its caller and uses it.
APART void busy(void) {
#if defined(__x86_64__)
    __asm__ volatile("mov $77, %%ebx" ::: "rbx");
#endif
    inner(100000);
#if defined(__x86_64__)
    __asm__ volatile("mov $78, %%ebx" ::: "rbx");
#endif
    sink++;
}

#if defined(__x86_64__)
void anchored(void);
__asm__(".text\n"
        ".type anchored, @function\n"
        "anchored:\n"
        ".cfi_startproc\n"
        "push %rbx\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset 3, -16\n"
        "mov %rsp, %rbx\n"
        ".cfi_def_cfa_register 3\n"
        "sub $0x208, %rsp\n"
        "and $-64, %rsp\n"
        "call busy\n"
        "mov %rbx, %rsp\n"
        ".cfi_def_cfa_register 7\n"
        "pop %rbx\n"
        ".cfi_def_cfa_offset 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size anchored, . - anchored\n");
#else
APART void anchored(void) {
    busy();
    sink++;
}
#endif

APART void caller(void) {
    anchored();
    sink++;
}

int main(void) {
    for (int turn = 0; turn < 4000; turn++)
        caller();
    return 0;
}
