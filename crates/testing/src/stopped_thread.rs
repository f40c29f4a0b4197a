//! A thread of the server that stands still for a moment: its registers, and one instruction at a time.

use std::ptr::null_mut;
use std::time::Duration;

use libc::{c_int, c_uint, c_void, pid_t, user_regs_struct};

/// A stopped thread. It goes on when this is dropped.
pub struct StoppedThread {
    thread: pid_t,
    /// A signal that arrived meanwhile and that it has still to get.
    signal: c_int,
}

impl StoppedThread {
    /// Stops a thread wherever it is; nothing where it has ended.
    pub fn stop(thread: u32) -> Option<Self> {
        let thread = pid_t::try_from(thread).ok()?;
        request(libc::PTRACE_SEIZE, thread, null_mut()).then_some(())?;
        let mut stopped = Self { thread, signal: 0 };
        request(libc::PTRACE_INTERRUPT, thread, null_mut()).then_some(())?;
        stopped.wait().then_some(stopped)
    }

    /// Its registers in user space; those with which it will go on if it is in a system call. Nothing of a
    /// thread that has never been there, such as a worker of io_uring: the kernel says so by an
    /// instruction and a stack pointer of 0 (copy_thread() in arch/x86/kernel/process.c).
    pub fn registers(&self) -> Option<user_regs_struct> {
        // SAFETY: integers only; all zero is a value of it.
        let mut registers: user_regs_struct = unsafe { std::mem::zeroed() };
        let place = (&raw mut registers).cast();
        let read = request(libc::PTRACE_GETREGS, self.thread, place);
        (read && (registers.rip, registers.rsp) != (0, 0)).then_some(registers)
    }

    /// Runs one instruction. False where something else happened.
    pub fn step(&mut self) -> bool {
        request(libc::PTRACE_SINGLESTEP, self.thread, null_mut()) && self.wait()
    }

    /// Lets it go on for about so long.
    pub fn go_on(&mut self, time: Duration) -> bool {
        let goes = request(libc::PTRACE_CONT, self.thread, null_mut());
        std::thread::sleep(time);
        goes && request(libc::PTRACE_INTERRUPT, self.thread, null_mut()) && self.wait()
    }

    /// Waits until it stands. False where it ended, or where a signal of somebody else stopped it.
    fn wait(&mut self) -> bool {
        let mut status = 0;
        // SAFETY: the status is a valid place.
        let waited = unsafe { libc::waitpid(self.thread, &mut status, libc::__WALL) };
        if waited != self.thread || !libc::WIFSTOPPED(status) {
            return false;
        }
        // The event says that it is our interruption; without it, SIGTRAP is the end of a step.
        let (event, signal) = (status >> 16, libc::WSTOPSIG(status));
        let ours = event != 0 || signal == libc::SIGTRAP;
        if !ours {
            self.signal = signal;
        }
        ours
    }
}

impl Drop for StoppedThread {
    fn drop(&mut self) {
        request(libc::PTRACE_DETACH, self.thread, self.signal as usize as *mut c_void);
    }
}

fn request(request: c_uint, thread: pid_t, data: *mut c_void) -> bool {
    // SAFETY: the data of PTRACE_GETREGS is a place for the registers; the others take no memory.
    unsafe { libc::ptrace(request, thread, null_mut::<c_void>(), data) == 0 }
}
