use super::find::{Code, loops, unrelaxed};
use super::*;

fn spin_loops(bytes: &[u8], functions: &[(u64, u64)], x86: bool) -> SpinLoops {
    let functions: Vec<Range<u64>> = functions.iter().map(|(start, end)| *start..*end).collect();
    let code = Code {
        sections: vec![(0x1000, bytes)],
        functions: &functions,
        decode: if x86 { x86_64::decode } else { aarch64::decode },
        may_call: if x86 { x86_64::may_call } else { aarch64::may_call },
        relaxes: if x86 { x86_64::relaxes } else { aarch64::relaxes },
        unrelaxed: if x86 { x86_64::unrelaxed } else { aarch64::unrelaxed },
        flows: if x86 { x86_64::flows } else { aarch64::flows },
    };
    let mut found = loops(&code);
    found.extend(unrelaxed(&code));
    SpinLoops::from_loops(found)
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn kinds_of(found: &SpinLoops) -> Vec<(Range<u64>, SpinKind, Option<Relax>)> {
    let loops = found.loops().iter();
    loops
        .map(|found| (found.start()..found.end(), found.kind, found.relax))
        .collect()
}

#[test]
fn a_loop_that_looks_and_pauses_is_a_poll() {
    // mov eax, [rdi]; test eax, eax; je end; pause; jmp start; end: ret
    let code = [0x8b, 0x07, 0x85, 0xc0, 0x74, 0x04, 0xf3, 0x90, 0xeb, 0xf6, 0xc3];
    let found = spin_loops(&code, &[(0x1000, 0x100b)], true);
    assert_eq!(kinds_of(&found), [(0x1000..0x100a, SpinKind::Poll, Some(Relax::Pause))]);
    assert!(found.contains(0x1000) && found.contains(0x1009) && !found.contains(0x100a) && !found.contains(0xfff));
    assert!(found.loops()[0].faults.is_empty());
}

/// Then only these are looked through, and not all code.
#[test]
fn of_few_functions_the_same_loops_are_found_as_among_all() {
    // As above, and TPAUSE in its place; far apart, and between them a PAUSE that reaches over a function's end.
    let with_pause = [0x8b, 0x07, 0x85, 0xc0, 0x74, 0x04, 0xf3, 0x90, 0xeb, 0xf6, 0xc3];
    let with_wait = [
        0x8b, 0x07, 0x85, 0xc0, 0x74, 0x06, 0x66, 0x0f, 0xae, 0xf1, 0xeb, 0xf4, 0xc3,
    ];
    let mut code = vec![0xcc_u8; 0x400];
    code[..with_pause.len()].copy_from_slice(&with_pause);
    code[0x10f..0x111].copy_from_slice(&[0xf3, 0x90]);
    code[0x200..0x200 + with_wait.len()].copy_from_slice(&with_wait);
    let few = [(0x1000, 0x100b), (0x1100, 0x1110), (0x1200, 0x120d)];
    let all = [
        few[0],
        (0x1010, 0x1100),
        few[1],
        (0x1110, 0x1200),
        few[2],
        (0x1210, 0x1400),
    ];
    let (of_few, of_all) = (spin_loops(&code, &few, true), spin_loops(&code, &all, true));
    assert_eq!(kinds_of(&of_few), kinds_of(&of_all));
    assert_eq!(of_few.loops().len(), 2);
}

#[test]
fn a_loop_that_only_counts_is_a_delay_and_its_callers_loop_a_retry() {
    // 1000: pause; dec edi; jne 1000; ret
    // 1010: push rbx; 1011: mov rbx, rdi; 1014: mov edi, 6; 1019: call 1000; 101e: cmp dword [rbx], 0; 1021: jne 1014; pop; ret
    let mut code = vec![0xf3, 0x90, 0xff, 0xcf, 0x75, 0xfa, 0xc3];
    code.resize(16, 0xcc);
    code.extend([0x53, 0x48, 0x89, 0xfb, 0xbf, 6, 0, 0, 0, 0xe8, 0xe2, 0xff, 0xff, 0xff]);
    code.extend([0x83, 0x3b, 0x00, 0x75, 0xf1, 0x5b, 0xc3]);
    let found = spin_loops(&code, &[(0x1000, 0x1007), (0x1010, 0x1025)], true);
    assert_eq!(
        kinds_of(&found),
        [
            (0x1000..0x1006, SpinKind::Delay, Some(Relax::Pause)),
            (0x1014..0x1023, SpinKind::Retry, Some(Relax::Pause))
        ]
    );
}

/// As GCC lays out mutex_spin_wait of MySQL 5.6: the call stands behind the end of the function, between other calls.
#[test]
fn a_retry_whose_body_was_put_elsewhere_is_found_in_its_parts() {
    // 1000: pause; dec edi; jne 1000; ret
    // 1010: push rbx; mov rbx, rdi; 1014: cmp dword [rbx], 0; jne 1024; 1019: call 1030; 101e: call 1030; pop rbx; 1024 is the
    // delay: mov edi, 6; 1029: call 1000; 102e: jmp 1014; 1030: ret
    let mut code = vec![0xf3, 0x90, 0xff, 0xcf, 0x75, 0xfa, 0xc3];
    code.resize(16, 0xcc);
    code.extend([0x53, 0x48, 0x89, 0xfb, 0x83, 0x3b, 0x00, 0x75, 0x0b]);
    code.extend([0xe8, 0x12, 0, 0, 0, 0xe8, 0x0d, 0, 0, 0, 0xc3]);
    code.extend([0xbf, 6, 0, 0, 0, 0xe8, 0xd2, 0xff, 0xff, 0xff, 0xeb, 0xe4, 0xc3]);
    let found = spin_loops(&code, &[(0x1000, 0x1007), (0x1010, 0x1030), (0x1030, 0x1031)], true);
    let retry = found.loops().iter().find(|found| found.kind == SpinKind::Retry);
    assert_eq!(
        retry.map(|found| found.parts.clone()),
        Some(vec![0x1014..0x1019, 0x1024..0x1030]),
        "{found:?}"
    );
    assert!(found.contains(0x1014) && found.contains(0x1029) && !found.contains(0x1019) && !found.contains(0x101e));
}

/// As GCC lays out `while (locked) pause();` between two calls: the turn is at both ends of the function.
#[test]
fn a_poll_whose_pause_was_put_elsewhere_is_found_in_its_parts() {
    // 1000: mov eax, [rdi]; test eax, eax; jne 1011; 1006: call 1020; 100b: call 1020; ret; 1011: pause; jmp 1000; 1020: ret
    let mut code = vec![
        0x8b, 0x07, 0x85, 0xc0, 0x75, 0x0b, 0xe8, 0x15, 0, 0, 0, 0xe8, 0x10, 0, 0, 0, 0xc3,
    ];
    code.extend([0xf3, 0x90, 0xeb, 0xeb]);
    code.resize(32, 0xcc);
    code.push(0xc3);
    let found = spin_loops(&code, &[(0x1000, 0x1015), (0x1020, 0x1021)], true);
    let parts: Vec<_> = found
        .loops()
        .iter()
        .map(|found| (found.parts.clone(), found.kind))
        .collect();
    assert_eq!(parts, [(vec![0x1000..0x1006, 0x1011..0x1015], SpinKind::Poll)]);
    assert!(!found.contains(0x1006) && found.contains(0x1011));
}

#[test]
fn what_a_waiting_loop_must_not_do_is_told() {
    // start: pause; mov eax, 1; xchg [rdi], eax; test eax, eax; jne start; ret
    let locked = [0xf3, 0x90, 0xb8, 1, 0, 0, 0, 0x87, 0x07, 0x85, 0xc0, 0x75, 0xf3, 0xc3];
    let found = spin_loops(&locked, &[(0x1000, 0x100e)], true);
    assert_eq!(found.loops()[0].faults, [SpinFault::LockedInstruction]);
    // start: pause; mfence; cmp dword [rdi], 0; jne start; ret
    let fenced = [0xf3, 0x90, 0x0f, 0xae, 0xf0, 0x83, 0x3f, 0x00, 0x75, 0xf6, 0xc3];
    let found = spin_loops(&fenced, &[(0x1000, 0x100b)], true);
    assert_eq!(found.loops()[0].faults, [SpinFault::MemoryBarrier]);
}

#[test]
fn loops_of_aarch64_are_found_by_isb_yield_and_wfe() {
    for (relax, name) in [
        (0xd503_3fdf, Relax::Isb),
        (0xd503_203f, Relax::Yield),
        (0xd503_205f, Relax::Wfe),
    ] {
        // start: ldr w1, [x0]; cbz w1, end; relax; b start; end: ret
        let code = words(&[0xb940_0001, 0x3400_0061, relax, 0x17ff_fffd, 0xd65f_03c0]);
        let found = spin_loops(&code, &[(0x1000, 0x1014)], false);
        assert_eq!(kinds_of(&found), [(0x1000..0x1010, SpinKind::Poll, Some(name))]);
    }
    // start: swp w2, w1, [x0]; dmb ish; yield; cbnz w1, start
    let code = words(&[0xb822_8001, 0xd503_3bbf, 0xd503_203f, 0x35ff_ffa1]);
    let found = spin_loops(&code, &[(0x1000, 0x1010)], false);
    assert_eq!(
        found.loops()[0].faults,
        [SpinFault::LockedInstruction, SpinFault::MemoryBarrier]
    );
}

#[test]
fn a_loop_that_only_looks_is_likely_to_wait() {
    // start: mov eax, [rdi]; test eax, eax; je start; ret
    let bare = [0x8b, 0x07, 0x85, 0xc0, 0x74, 0xfa, 0xc3];
    let found = spin_loops(&bare, &[(0x1000, 0x1007)], true);
    assert_eq!(kinds_of(&found), [(0x1000..0x1006, SpinKind::Poll, None)]);
    assert_eq!(found.loops()[0].faults, [SpinFault::NoRelax]);
    assert!(!found.contains(0x1000), "a thread that is seen there may not wait");
    // start: cmp dword [rip + 0x100], 0; jne start; ret
    let global = [0x83, 0x3d, 0, 1, 0, 0, 0, 0x75, 0xf7, 0xc3];
    let found = spin_loops(&global, &[(0x1000, 0x100a)], true);
    assert_eq!(kinds_of(&found), [(0x1000..0x1009, SpinKind::Poll, None)]);
    // start: ldr w1, [x0]; cbz w1, start; ret. And: start: ldar w1, [x0]; cmp w1, #1; b.ne start; ret
    for code in [
        &[0xb940_0001, 0x34ff_ffe1, 0xd65f_03c0][..],
        &[0x88df_fc01, 0x7100_043f, 0x54ff_ffc1, 0xd65f_03c0],
    ] {
        let bytes = words(code);
        let found = spin_loops(&bytes, &[(0x1000, 0x1000 + bytes.len() as u64)], false);
        let end = 0x1000 + bytes.len() as u64 - 4;
        assert_eq!(kinds_of(&found), [(0x1000..end, SpinKind::Poll, None)]);
    }
}

#[test]
fn counting_between_two_looks_is_a_delay_and_may_be_left_out_where_more_than_time_comes_of_it() {
    // 1000: mov ecx, 100; 1005: dec ecx; jne 1005; 1009: cmp dword [rdi], 0; jne 1000; ret
    let x86 = [
        0xb9, 100, 0, 0, 0, 0xff, 0xc9, 0x75, 0xfc, 0x83, 0x3f, 0x00, 0x75, 0xf2, 0xc3,
    ];
    // 1000: mov w1, #100; 1004: subs w1, w1, #1; b.ne 1004; 100c: ldr w2, [x0]; cbnz w2, 1000; ret
    let arm = words(&[
        0x5280_0c81,
        0x7100_0421,
        0x54ff_ffe1,
        0xb940_0002,
        0x35ff_ff82,
        0xd65f_03c0,
    ]);
    for (code, is_x86, delay) in [(&x86[..], true, 0x1005..0x1009), (&arm, false, 0x1004..0x100c)] {
        let found = spin_loops(code, &[(0x1000, 0x1000 + code.len() as u64)], is_x86);
        assert_eq!(kinds_of(&found), [(delay.clone(), SpinKind::Delay, None)]);
        assert_eq!(found.loops()[0].faults, [SpinFault::NoRelax]);
        assert!(!found.contains(delay.start));
    }
    // By twos, to a constant: sub ecx, 2. subs w1, w1, #2.
    let x86 = [
        0xb9, 100, 0, 0, 0, 0x83, 0xe9, 2, 0x75, 0xfb, 0x83, 0x3f, 0x00, 0x75, 0xf1, 0xc3,
    ];
    let arm = words(&[
        0x5280_0c81,
        0x7100_0821,
        0x54ff_ffe1,
        0xb940_0002,
        0x35ff_ff82,
        0xd65f_03c0,
    ]);
    for (code, is_x86) in [(&x86[..], true), (&arm, false)] {
        let found = spin_loops(code, &[(0x1000, 0x1000 + code.len() as u64)], is_x86);
        assert_eq!(found.loops()[0].faults, [SpinFault::NoRelax, SpinFault::OnlyCounts]);
    }
    // Without a look around it nothing comes of it either: dec ecx; jne; ret. subs w1, w1, #1; b.ne; ret.
    let arm = words(&[0x7100_0421, 0x54ff_ffe1, 0xd65f_03c0]);
    for (code, is_x86, end) in [
        (&[0xff, 0xc9, 0x75, 0xfc, 0xc3][..], true, 0x1004),
        (&arm, false, 0x1008),
    ] {
        let found = spin_loops(code, &[(0x1000, 0x1000 + code.len() as u64)], is_x86);
        assert_eq!(kinds_of(&found), [(0x1000..end, SpinKind::Delay, None)]);
    }
    // Where something else is counted there is a sum: inc eax; dec ecx; jne; ret. add w0, w0, #1; subs w1, w1, #1; b.ne; ret.
    let arm = words(&[0x1100_0400, 0x7100_0421, 0x54ff_ffc1, 0xd65f_03c0]);
    for (code, is_x86) in [(&[0xff, 0xc0, 0xff, 0xc9, 0x75, 0xfa, 0xc3][..], true), (&arm, false)] {
        let found = spin_loops(code, &[(0x1000, 0x1000 + code.len() as u64)], is_x86);
        assert!(found.loops().is_empty(), "{code:x?}: {found:?}");
    }
}

#[test]
fn what_doubles_or_shifts_does_not_only_count() {
    // As above, with for dec ecx: add ecx, ecx; and: shr ecx, 1.
    for inner in [[0x01, 0xc9], [0xd1, 0xe9]] {
        let mut code = vec![0xb9, 100, 0, 0, 0];
        code.extend(inner);
        code.extend([0x75, 0xfc, 0x83, 0x3f, 0x00, 0x75, 0xf2, 0xc3]);
        let found = spin_loops(&code, &[(0x1000, 0x100f)], true);
        assert!(found.loops().is_empty(), "{inner:x?}: {found:?}");
    }
    // adds w1, w1, w1; and: adds w1, w1, w3, lsl #3.
    for inner in [0x2b01_0021, 0x2b03_0c21] {
        let code = words(&[0x5280_0c81, inner, 0x54ff_ffe1, 0xb940_0002, 0x35ff_ff82, 0xd65f_03c0]);
        let found = spin_loops(&code, &[(0x1000, 0x1018)], false);
        assert!(found.loops().is_empty(), "{inner:x}: {found:?}");
    }
}

#[test]
fn loops_that_get_on_are_not_taken_to_wait() {
    let x86: [&[u8]; 4] = [
        // start: mov rax, [rax]; test rax, rax; jne start; ret
        &[0x48, 0x8b, 0x00, 0x48, 0x85, 0xc0, 0x75, 0xf8, 0xc3],
        // start: cmp byte [rdi], 0; lea rdi, [rdi + 1]; jne start; ret
        &[0x80, 0x3f, 0x00, 0x48, 0x8d, 0x7f, 0x01, 0x75, 0xf7, 0xc3],
        // start: mov eax, [rdi]; lea edx, [rax + 1]; lock cmpxchg [rdi], edx; jne start; ret
        &[0x8b, 0x07, 0x8d, 0x50, 0x01, 0xf0, 0x0f, 0xb1, 0x17, 0x75, 0xf5, 0xc3],
        // start: mov eax, [rdi]; mov [rsi], eax; test eax, eax; jne start; ret
        &[0x8b, 0x07, 0x89, 0x06, 0x85, 0xc0, 0x75, 0xf8, 0xc3],
    ];
    for code in x86 {
        let found = spin_loops(code, &[(0x1000, 0x1000 + code.len() as u64)], true);
        assert!(found.loops().is_empty(), "{code:x?}: {found:?}");
    }
    // start: ldr x0, [x0]; cbnz x0, start. And: start: ldrb w1, [x0], #1; cbnz w1, start
    for code in [[0xf940_0000, 0xb5ff_ffe0], [0x3840_1401, 0x35ff_ffe1]] {
        let found = spin_loops(&words(&code), &[(0x1000, 0x1008)], false);
        assert!(found.loops().is_empty(), "{code:x?}: {found:?}");
    }
    // The bytes of one within another instruction: mov eax, 0xfa74c085; with 8b 07 before it as the end of a constant.
    let hidden = [0xb8, 0x00, 0x00, 0x8b, 0x07, 0xb9, 0x85, 0xc0, 0x74, 0xf9, 0xc3];
    let found = spin_loops(&hidden, &[(0x1000, 0x100b)], true);
    assert!(found.loops().is_empty(), "{found:?}");
}

#[test]
fn a_pause_outside_of_any_loop_and_loops_without_one_are_none() {
    // pause; ret, called by nobody in a loop; and a loop that adds up: add eax, [rdi]; dec esi; jne; ret
    let code = [0xf3, 0x90, 0xc3, 0xcc, 0x03, 0x07, 0xff, 0xce, 0x75, 0xfa, 0xc3];
    let found = spin_loops(&code, &[(0x1000, 0x1003), (0x1004, 0x100b)], true);
    assert!(found.loops().is_empty(), "{found:?}");
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_taken_apart_without_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..400), x86: bool) {
        let half = 0x1000 + bytes.len() as u64 / 2;
        let found = spin_loops(&bytes, &[(0x1000, half), (half, 0x1000 + bytes.len() as u64)], x86);
        for found in found.loops() {
            proptest::prop_assert!(found.start() < found.end() && found.function.contains(&found.start()));
        }
    }
}

/// As in MariaDB 10.11 of Debian for arm64: trylock_short, srw_mutex_impl::wait_and_lock and log_t::append_prepare_wait.
#[test]
fn delays_of_aarch64_without_an_instruction_that_says_so_are_found() {
    const RET: u32 = 0xd65f_03c0;
    let delays: [&[u32]; 3] = [
        // subs w0, w0, #1; b.ne
        &[0x7100_0400, 0x54ff_ffe1],
        // sub w1, w1, #1; cmn w1, #1; b.ne
        &[0x5100_0421, 0x3100_043f, 0x54ff_ffc1],
        // cbz w1, behind it; sub w1, w1, #1; b
        &[0x3400_0061, 0x5100_0421, 0x17ff_fffe],
    ];
    for delay in delays {
        // Calls before it: it is no helper.
        let code = words(&[&[0x9400_0100, 0x5280_1900], delay, &[RET]].concat());
        let found = spin_loops(&code, &[(0x1000, 0x1000 + code.len() as u64)], false);
        let range = 0x1008..0x1008 + 4 * delay.len() as u64;
        assert_eq!(kinds_of(&found), [(range, SpinKind::Delay, None)], "{delay:x?}");
    }
    // By tens, which leaves a remainder: sub w0, w0, #10; cmp w0, #9; b.hi
    let code = words(&[0x9400_0100, 0x5280_1900, 0x5100_2800, 0x7100_241f, 0x54ff_ffc8, RET]);
    assert!(spin_loops(&code, &[(0x1000, 0x1018)], false).loops().is_empty());
}

/// As in Rows_log_event of MariaDB 10.11 for arm64: `mov x0, x25; cmp x0, x25; b.cs; ldrb w1, [x0]; cbnz w1`, entered at `cmp`.
#[test]
fn a_loop_whose_first_turn_is_not_as_the_others_does_not_wait() {
    let code = words(&[
        0x1400_0002,
        0xaa19_03e0,
        0xeb19_001f,
        0x5400_0082,
        0x3940_0001,
        0x35ff_ff81,
        0xd65f_03c0,
        0xd65f_03c0,
    ]);
    assert!(spin_loops(&code, &[(0x1000, 0x1020)], false).loops().is_empty());
}

/// `while (queue->entries) { if (!queue->first) continue; ... }`, which goes on at its beginning, and the same loop by itself.
#[test]
fn what_continue_makes_of_a_larger_loop_does_not_wait() {
    // 1000: ldr x1, [x0, #8]; cbz x1, 1020; ldr x2, [x0]; cbz x2, 1000; 1010: str x3, [x0]; b 1000; ...; 1020: ret
    let larger = words(&[
        0xf940_0401,
        0xb400_00e1,
        0xf940_0002,
        0xb4ff_ffa2,
        0xf900_0003,
        0x17ff_fffb,
        0xd503_201f,
        0xd503_201f,
        0xd65f_03c0,
    ]);
    assert!(spin_loops(&larger, &[(0x1000, 0x1024)], false).loops().is_empty());
    // Behind it the function ends.
    let alone = words(&[
        0xf940_0401,
        0xb400_00e1,
        0xf940_0002,
        0xb4ff_ffa2,
        0xf900_0003,
        0xd65f_03c0,
    ]);
    let alone = [alone, words(&[0xd503_201f, 0xd503_201f, 0xd65f_03c0])].concat();
    let found = spin_loops(&alone, &[(0x1000, 0x1024)], false);
    assert_eq!(kinds_of(&found), [(0x1000..0x1010, SpinKind::Poll, None)]);
}
