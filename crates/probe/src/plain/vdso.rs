//! The code that the kernel maps into every process (vDSO; man 7 vdso).
//!
//! It is in no file. All processes of one machine share the same pages, so our own copy serves for theirs: reading the
//! server's memory would need the right to trace it (Yama), reading our own needs none.

use super::memory_map::parse_maps;

/// The bytes of the vDSO, an ELF image; nothing where the kernel maps none (`vdso=0` on its command line).
pub(super) fn own_image() -> Option<Vec<u8>> {
    let text = std::fs::read_to_string("/proc/self/maps").ok()?;
    let mapping = parse_maps(&text).into_iter().find(|mapping| mapping.path == "[vdso]")?;
    let length = usize::try_from(mapping.addresses.end - mapping.addresses.start).ok()?;
    // SAFETY: the kernel just listed these bytes as mapped and readable; nothing ever unmaps or writes to the vDSO.
    let bytes = unsafe { std::slice::from_raw_parts(mapping.addresses.start as *const u8, length) };
    Some(bytes.to_vec())
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_an_elf_image() {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("readable");
        let image = super::own_image();
        assert_eq!(image.is_some(), maps.contains("[vdso]"), "{maps}");
        match image {
            Some(image) => assert_eq!(&image[..4], b"\x7fELF"),
            None => testing::skip!("this kernel maps no vDSO"),
        }
    }
}
