//! Whatever a file holds, it is read or refused; nothing panics or goes on for ever.

use proptest::collection::vec;
use proptest::prelude::*;
use scaleprof_profile::import::{ReadOptions, read_recordings, recordings_in};
use scaleprof_profile::{About, Amount, Cost, CostProfile, Frame, KERNEL, Unit, folded, pprof};
use scaleprof_vocabulary::{Role, ThreadState};
use std::io::{Read as _, Write as _};

/// `FUZZ_CASES` of them: a few in every run of the tests, millions by hand.
fn cases() -> u32 {
    let asked = std::env::var("FUZZ_CASES").ok();
    asked.and_then(|cases| cases.parse().ok()).unwrap_or(600)
}

/// A profile of a few call paths.
fn profile() -> CostProfile {
    let mut profile = CostProfile {
        about: About {
            title: "a run".into(),
            amount: Amount::Transactions(10.0),
            seconds: Some(1.0),
            ..About::default()
        },
        names: vec!["log_sys".into()],
        ..CostProfile::default()
    };
    for (place, state) in ThreadState::ALL.into_iter().enumerate() {
        let names = [
            "start_thread",
            "do_command(THD*)",
            ["read", "write", "futex"][place % 3],
        ];
        let mut stack = None;
        for (depth, name) in names.into_iter().enumerate() {
            let module = if name == "futex" { KERNEL } else { "mysqld" };
            let mut frame = Frame::named(module.to_owned(), Some(name.to_owned()));
            frame.inlined = depth == 2 && place % 2 == 0 && module == "mysqld";
            let number = profile.frames.intern(frame);
            stack = Some(profile.stacks.child(stack, number));
        }
        profile.costs.push(Cost {
            stack: stack.expect("three frames"),
            state,
            role: Role::Connection,
            thread: None,
            lock: Some(0).filter(|_| state == ThreadState::Lock),
            thread_seconds: 0.1,
            samples: 3,
        });
    }
    profile
}

const PERF_SCRIPT: &str = "\
# captured on a machine
mysqld 1234/1240 [001] 12345.678901:     250000 cpu-clock:pppH:
\t    7f8c1234abcd pthread_mutex_lock+0x12 (/usr/lib/libc.so.6)
\t    55d0 operator()(int) const (inlined)
\t    55d1 main+0x1 (/opt/my sql/mysqld (deleted))

Web Content 12 34/35 [000] 12345.7: 1 cycles:u:  ffffffff81 mwait_idle ([kernel.kallsyms])
swapper     0 [000] 12346.1: sched:sched_switch: prev_comm=swapper prev_pid=0
\tffffffff81 __schedule ([kernel.kallsyms])

";

fn files() -> Vec<Vec<u8>> {
    let packed = pprof::write(&profile()).expect("into memory");
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(&packed[..])
        .read_to_end(&mut plain)
        .expect("just packed");
    vec![
        packed,
        plain,
        folded::write(&profile(), Unit::PerAmount).into_bytes(),
        folded::write_difference(&profile(), &profile(), Unit::Seconds).into_bytes(),
        PERF_SCRIPT.as_bytes().to_vec(),
    ]
}

/// Reads it in all ways; a warning or an error is one line of words.
fn attempt(bytes: &[u8]) {
    for event in [None, Some("cycles".to_owned()), Some("samples".to_owned())] {
        for process in [None, Some("34".to_owned())] {
            let options = ReadOptions {
                event: event.clone(),
                process,
                ..ReadOptions::default()
            };
            assert!((1..=2).contains(&recordings_in(bytes)));
            match read_recordings(bytes, &options) {
                Ok(recordings) => {
                    for recording in &recordings {
                        assert!(!recording.profile.samples.is_empty());
                        for sample in &recording.profile.samples {
                            assert!(sample.weight_ns.is_finite() && sample.weight_ns >= 0.0);
                            assert!(recording.profile.stacks.get(sample.stack).is_some());
                        }
                    }
                }
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
}

#[test]
fn the_files_that_are_damaged_below_are_good_ones() {
    for file in files() {
        assert!(read_recordings(&file[..], &ReadOptions::default()).is_ok());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..300)) {
        attempt(&bytes);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[a-c;:/()+x\\[\\] \t\n0-9.]{0,200}") {
        attempt(text.as_bytes());
    }

    #[test]
    fn any_message_is_read_or_refused(fields in vec((1..16_u8, vec(any::<u8>(), 0..20)), 0..30)) {
        let mut bytes = Vec::new();
        for (field, content) in fields {
            bytes.extend([field << 3 | 2, content.len() as u8]);
            bytes.extend(content);
        }
        attempt(&bytes);
    }

    #[test]
    fn damaged_files_are_read_in_part_or_refused(
        which in 0..5_usize, cut in 0.0..1.0, flips in vec((0.0..1.0, any::<u8>()), 0..6), doubled in 0.0..1.0,
    ) {
        let mut bytes = files()[which].clone();
        let place = |share: f64, length: usize| ((length as f64 * share) as usize).min(length.saturating_sub(1));
        for (share, value) in flips {
            let at = place(share, bytes.len());
            bytes[at] = value;
        }
        let middle = place(doubled, bytes.len());
        let tail = bytes[middle..].to_vec();
        attempt(&bytes);
        attempt(&bytes[..place(cut, bytes.len())]);
        bytes.extend(tail);
        attempt(&bytes);
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&bytes).expect("into memory");
        attempt(&encoder.finish().expect("into memory"));
    }
}
