use super::*;
use crate::perf_data::record::Header;
use std::io::Write as _;

fn words(of: &[u64]) -> Vec<u8> {
    of.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A file of these events, each with its number, and of samples.
fn file_of(events: &[(u64, u64)], samples: &[Vec<u8>]) -> Vec<u8> {
    let samples: Vec<(u32, &[u8])> = samples.iter().map(|body| (kind::SAMPLE, &**body)).collect();
    file_of_records(events, &samples)
}

/// A file of these events, each with its number, and of records.
fn file_of_records(events: &[(u64, u64)], of_kinds: &[(u32, &[u8])]) -> Vec<u8> {
    const ATTRIBUTE: u64 = 112;
    let ids = HEADER + events.len() as u64 * (ATTRIBUTE + 16);
    let data = ids + events.len() as u64 * 8;
    let mut records = Vec::new();
    for (kind, body) in of_kinds {
        records.extend(kind.to_le_bytes());
        records.extend([2, 0]);
        records.extend(((body.len() + Header::LENGTH) as u16).to_le_bytes());
        records.extend(*body);
    }
    let mut bytes = b"PERFILE2".to_vec();
    bytes.extend(words(&[HEADER, ATTRIBUTE + 16, HEADER, ids - HEADER]));
    bytes.extend(words(&[data, records.len() as u64, 0, 0, 0, 0, 0, 0]));
    for ((sample_type, _), place) in events.iter().zip((ids..).step_by(8)) {
        bytes.extend(words(&[1 | ATTRIBUTE << 32, 0, 1, *sample_type]));
        bytes.extend(words(&[0; 10]));
        bytes.extend(words(&[place, 8]));
    }
    bytes.extend(events.iter().flat_map(|(_, id)| id.to_le_bytes()));
    bytes.extend(records);
    bytes
}

/// perf gives all events of a recording their numbers in one place; a file may say something else.
#[test]
fn a_number_that_lies_within_the_copy_of_a_stack_is_read_all_the_same() {
    let numbered = field::IP | field::TID | field::TIME | field::ID;
    let of_first = words(&[0x1000, 7 << 32 | 7, 10, 5]);
    // The copy of its stack, of 800 bytes, has the number as its third word.
    let mut of_second = words(&[800, 0, 0, 6]);
    of_second.resize(816, 0);
    let bytes = file_of(&[(numbered, 5), (field::STACK_USER, 6)], &[of_first, of_second]);
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(&bytes).expect("written");
    let let_go = |_: &[u8]| {};
    let behind = Behind::new(&bytes, 0, &let_go);
    let told = |is_read: bool| {
        let mut container = Container::open(&bytes, &behind).expect("a header");
        let beginnings = container.beginnings(&file).expect("readable").filter(|_| is_read);
        assert_eq!(beginnings.is_some(), is_read);
        container.read_all(beginnings.as_ref()).expect("events");
        let timed = container.in_order();
        let events: Vec<_> = timed
            .records
            .iter()
            .map(|(time, record)| (*time, timed.ids.of_record(record)))
            .collect();
        (events, container.problems)
    };
    assert_eq!(told(true), told(false));
    assert_eq!(told(true).0.len(), 2);
}

#[test]
fn a_trace_of_the_processor_is_named_with_the_command_that_makes_samples_of_it() {
    for (number, name) in [
        (1, "Intel PT"),
        (3, "CoreSight"),
        (4, "Arm SPE"),
        (99, "a tracing unit"),
    ] {
        // Its number, and room that perf keeps (perf_record_auxtrace_info).
        let info = words(&[number, 0, 0]);
        let bytes = file_of_records(&[(field::IP | field::TID, 5)], &[(kind::AUXTRACE_INFO, &info)]);
        let found = crate::perf_data::read(bytes.as_slice(), &crate::import::ReadOptions::default());
        let said = found.expect_err("no samples").to_string();
        assert!(
            said.contains(name) && said.contains("perf script --itrace=") && !said.contains("nothing of it ran"),
            "{said}"
        );
    }
}
