/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The few fields of the kernel's own structures that are read. The loader finds each field's place in the running kernel's
 * type information (CO-RE), so the order and the neighbours of a field do not matter here.
 */
#ifndef SCALEPROF_KERNEL_H
#define SCALEPROF_KERNEL_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* arch/x86/include/asm/ptrace.h, arch/arm64/include/asm/ptrace.h; the suffix keeps it apart from the one of user space. */
#if defined(__TARGET_ARCH_x86)
struct pt_regs___kernel {
	unsigned long bp;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long orig_ax;
	unsigned long ip;
	unsigned long cs;
	unsigned long sp;
};
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs___kernel {
	__u64 regs[31];
	__u64 sp;
	__u64 pc;
	__u64 orig_x0;
	__s32 syscallno;
};
#endif

/* include/linux/fs.h, fdtable.h: is a descriptor a socket? */
struct inode {
	unsigned short i_mode;
};

struct file {
	struct inode *f_inode;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

/* include/linux/sched.h: what the scheduler itself keeps of each thread, nanoseconds. */
struct sched_entity {
	__u64 sum_exec_runtime;
	__u64 exec_start; /* by the clock of the run queue: when it got its CPU, or was last charged for it */
};

struct sched_info {
	unsigned long long run_delay;
	unsigned long long last_arrival; /* on a CPU, by the clock of its run queue */
	unsigned long long last_queued; /* since when it waits in a run queue; 0 where it does not */
};

struct mm_struct;

/* include/linux/sched.h */
struct task_struct {
	unsigned int __state;
	struct sched_entity se;
	struct sched_info sched_info;
	unsigned int flags;
	struct mm_struct *mm; /* none once a thread that ends has given it back */
	int on_cpu;
	unsigned int in_iowait : 1;
	unsigned int frozen : 1; /* stands still for its cgroup (version 2, Linux 5.2), which may be frozen */
	unsigned long nvcsw;
	unsigned long nivcsw;
	int pid;
	int tgid;
	char comm[16];
	struct files_struct *files;
};

/* kernel/bpf/task_iter.c */
struct bpf_iter_meta {
	__u64 session_id;
	__u64 seq_num;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

/* include/linux/sched.h */
#define TASK_RUNNING 0
/* __TASK_STOPPED (SIGSTOP) and __TASK_TRACED (a debugger) */
#define TASK_STOPPED 0x4
#define TASK_TRACED 0x8
#define TASK_WAKING 0x200
/* include/trace/events/lock.h: the lock is waited for without leaving the CPU */
#define LCB_F_SPIN 1
#define PF_EXITING 0x00000004
#define PF_KTHREAD 0x00200000

/* include/uapi/linux/bpf.h of Linux 5.8: Ubuntu 20.04 builds with the headers of 5.4. */
#define BPF_F_MMAPABLE (1U << 10)
#define BPF_MAP_TYPE_RINGBUF 27
#define BPF_RB_NO_WAKEUP (1ULL << 0)

#endif
