//! Small ELF files for the cases that no real server has.

/// `e_machine` of 64-bit x86.
pub const X86_64: u16 = 62;
/// `e_machine` of 64-bit Arm.
pub const AARCH64: u16 = 183;

/// A section to put into a file.
pub struct SmallSection {
    /// Such as `.eh_frame`; behind `.symtab` comes `.strtab`.
    pub name: &'static str,
    /// Its virtual address.
    pub svma: u64,
    /// What is in it.
    pub data: Vec<u8>,
}

/// A file with one executable segment, and one read-only segment for every section.
pub fn small_elf(machine: u16, code_svma: u64, code: &[u8], sections: &[SmallSection]) -> Vec<u8> {
    let mut names = vec![0];
    let mut out = vec![0; 64 + 56 * (1 + sections.len())];
    let mut segments = vec![(5_u32, out.len() as u64, code_svma, code.len() as u64)];
    out.extend(code);
    let mut headers = vec![[0_u64; 4]];
    for section in sections {
        let place = out.len() as u64;
        let size = section.data.len() as u64;
        headers.push([names.len() as u64, section.svma, place, size]);
        names.extend(section.name.bytes().chain([0]));
        segments.push((4, place, section.svma, size));
        out.extend(&section.data);
    }
    let names_place = [names.len() as u64, 0, out.len() as u64, (names.len() + 10) as u64];
    names.extend(b".shstrtab\0");
    out.extend(&names);
    headers.push(names_place);
    let headers_place = out.len() as u64;
    for (index, [name, svma, place, size]) in headers.iter().enumerate() {
        // Null; symbols, whose names are in the next section; names; anything else.
        let (kind, link) = match index.checked_sub(1).map(|index| sections.get(index)) {
            None => (0, 0),
            Some(Some(section)) if section.name == ".symtab" => (2, index as u32 + 1),
            Some(Some(section)) if section.name != ".strtab" => (1, 0),
            Some(_) => (3, 0),
        };
        out.extend((*name as u32).to_le_bytes());
        out.extend(u32::to_le_bytes(kind));
        out.extend(2_u64.to_le_bytes());
        for value in [svma, place, size] {
            out.extend(value.to_le_bytes());
        }
        out.extend(u32::to_le_bytes(link));
        out.extend([0; 4]);
        out.extend(1_u64.to_le_bytes());
        out.extend([0; 8]);
    }
    let mut header = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    header.extend(3_u16.to_le_bytes());
    header.extend(machine.to_le_bytes());
    header.extend(1_u32.to_le_bytes());
    header.extend(0_u64.to_le_bytes());
    header.extend(64_u64.to_le_bytes());
    header.extend(headers_place.to_le_bytes());
    header.extend(0_u32.to_le_bytes());
    let counts = [
        64,
        56,
        segments.len() as u16,
        64,
        headers.len() as u16,
        headers.len() as u16 - 1,
    ];
    header.extend(counts.into_iter().flat_map(u16::to_le_bytes));
    for (flags, place, svma, size) in segments {
        header.extend(1_u32.to_le_bytes());
        header.extend(flags.to_le_bytes());
        for value in [place, svma, svma, size, size, 1] {
            header.extend(value.to_le_bytes());
        }
    }
    out[..header.len()].copy_from_slice(&header);
    out
}
