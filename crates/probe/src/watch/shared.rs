//! A BPF table that this program sees as memory (`BPF_F_MMAPABLE`): filled and read without a system call an element.

use std::io;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{Ordering, fence};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::layout::Plain;

/// `length` elements of an array that the kernel and this program both see.
#[derive(Debug)]
pub(crate) struct Shared<T: Plain> {
    start: NonNull<T>,
    length: usize,
    bytes: usize,
    element: PhantomData<T>,
}

// SAFETY: the memory belongs to the value, and every access copies.
unsafe impl<T: Plain + Send> Send for Shared<T> {}

impl<T: Plain> Shared<T> {
    /// Maps a table of `length` elements, which must have the size of `T` in it (sizes of 8, 16, ... bytes, or rows in
    /// chunks: an array map rounds its elements up to 8 bytes).
    pub(crate) fn map(table: BorrowedFd<'_>, length: usize) -> io::Result<Self> {
        let bytes = (length * size_of::<T>()).next_multiple_of(rustix::param::page_size());
        // SAFETY: a fresh mapping at a place that the kernel chooses.
        let start = unsafe {
            mmap(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                table,
                0,
            )
        }?;
        let start = NonNull::new(start.cast::<T>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self {
            start,
            length,
            bytes,
            element: PhantomData,
        })
    }

    /// A copy of one element; it may be torn when the kernel writes it at this moment.
    pub(crate) fn get(&self, index: usize) -> Option<T> {
        // SAFETY: inside of the mapping, aligned as the kernel lays it out, any bytes are valid.
        (index < self.length).then(|| unsafe { self.start.as_ptr().add(index).read_volatile() })
    }

    /// The first four bytes of an element, which cost less than all of it.
    pub(crate) fn first_word(&self, index: usize) -> Option<u32> {
        const { assert!(size_of::<T>() >= size_of::<u32>() && align_of::<T>() >= align_of::<u32>()) };
        // SAFETY: as above; the element is long enough and aligned for it.
        (index < self.length).then(|| unsafe { self.start.as_ptr().add(index).cast::<u32>().read_volatile() })
    }

    /// The byte at a place of an element.
    pub(crate) fn byte(&self, index: usize, offset: usize) -> Option<u8> {
        // SAFETY: inside of the mapping.
        (index < self.length && offset < size_of::<T>())
            .then(|| unsafe { self.start.as_ptr().add(index).cast::<u8>().add(offset).read_volatile() })
    }

    /// Writes the word at a place of an element, and nothing of what stands around it; nothing happens past the end.
    pub(crate) fn set_word(&self, index: usize, offset: usize, value: u32) {
        if index < self.length && offset.is_multiple_of(size_of::<u32>()) && offset + size_of::<u32>() <= size_of::<T>()
        {
            // SAFETY: inside of the mapping, and aligned as the element begins at a multiple of four.
            unsafe {
                self.start
                    .as_ptr()
                    .add(index)
                    .byte_add(offset)
                    .cast::<u32>()
                    .write_volatile(value)
            }
        }
    }

    /// Writes one element; nothing happens past the end.
    pub(crate) fn set(&self, index: usize, value: T) {
        if index < self.length {
            // SAFETY: as above.
            unsafe { self.start.as_ptr().add(index).write_volatile(value) }
        }
    }

    /// Writes many from `first` on; false (and nothing written) where they do not all fit.
    pub(crate) fn set_all(&self, first: usize, values: &[T]) -> bool {
        if first.checked_add(values.len()).is_none_or(|end| end > self.length) {
            return false;
        }
        // SAFETY: they fit; the kernel reads them only after it was told of them.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), self.start.as_ptr().add(first), values.len()) }
        fence(Ordering::SeqCst);
        true
    }
}

impl<T: Plain> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: what was mapped, and nobody holds a reference into it.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
