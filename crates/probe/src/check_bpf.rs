//! Can programs be loaded into the kernel? Asked by loading one of two instructions, not by reading settings.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Start of `union bpf_attr` for BPF_PROG_LOAD (include/uapi/linux/bpf.h).
#[repr(C)]
struct LoadAttributes {
    program_type: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buffer: u64,
    kernel_version: u32,
    flags: u32,
}

const COMMAND_LOAD: libc::c_int = 5;
const TYPE_PERF_EVENT: u32 = 7;

/// Loads `r0 = 0; exit` as a program for perf events: the kind the profiler needs.
pub(crate) fn try_load() -> io::Result<()> {
    let instructions: [[u8; 8]; 2] = [[0xb7, 0, 0, 0, 0, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];
    let license = c"GPL";
    let attributes = LoadAttributes {
        program_type: TYPE_PERF_EVENT,
        instruction_count: 2,
        instructions: instructions.as_ptr() as u64,
        license: license.as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log_buffer: 0,
        kernel_version: 0,
        flags: 0,
    };
    // SAFETY: the attributes and all they point to live until the call returns, and their size is given.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            COMMAND_LOAD,
            std::ptr::from_ref(&attributes),
            size_of::<LoadAttributes>() as libc::c_uint,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just gave us this descriptor; dropping it unloads the program.
    drop(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) });
    Ok(())
}

/// Sets up a ring of one entry, as the client would.
pub(crate) fn try_io_uring() -> io::Result<()> {
    // struct io_uring_params has 120 bytes (include/uapi/linux/io_uring.h); zeroes ask for the defaults.
    let mut parameters = [0u64; 15];
    // SAFETY: the kernel writes at most the size of io_uring_params.
    let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just gave us this descriptor.
    drop(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) });
    Ok(())
}
