//! What is written is what is read, whatever the values are.

#[allow(dead_code)]
mod sample;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use scaleprof_bundle::*;

fn any_rung() -> impl Strategy<Value = RungRow> {
    let finite = proptest::num::f64::NORMAL | proptest::num::f64::ZERO;
    (
        any::<[i32; 4]>(),
        any::<[i64; 2]>(),
        option::of(finite),
        ".*",
        option::of(any::<i64>()),
    )
        .prop_map(|(small, big, rate, outcome, bytes)| RungRow {
            visit: 0,
            connections: small[0],
            idle_connections: small[1],
            repeat: small[2],
            offered_rate: rate,
            started_at: UtcMicros(big[0]),
            connect_seconds: big[1] as f64,
            outcome,
            client_lag_p99_us: rate,
            client_threads: small[3],
            client_resident_bytes: bytes,
        })
}

fn any_second() -> impl Strategy<Value = SecondRow> {
    (
        any::<i32>(),
        any::<[i64; 11]>(),
        option::of(any::<i64>()),
        option::of(any::<i64>()),
    )
        .prop_map(|(second, n, a, b)| SecondRow {
            visit: 0,
            second,
            started_at: UtcMicros(n[0]),
            duration_ns: n[1],
            transactions: n[2],
            queries: n[3],
            reads: n[4],
            writes: n[5],
            errors: n[6],
            retries: n[7],
            service_sum_ns: n[8],
            response_sum_ns: n[9],
            inside_ns: n[8],
            p50_ns: a,
            p95_ns: b,
            p99_ns: a,
            max_ns: Some(n[10]),
        })
}

fn any_counter() -> impl Strategy<Value = CounterRow> {
    let number = proptest::num::f64::NORMAL | proptest::num::f64::INFINITE;
    (
        option::of(any::<i32>()),
        "[a-z._]{0,9}",
        number,
        option::of(0.0..1.0f64),
    )
        .prop_map(|(second, counter, value, counted_share)| CounterRow {
            visit: 0,
            second,
            counter,
            value,
            counted_share,
        })
}

fn any_latency() -> impl Strategy<Value = LatencyRow> {
    (any::<i32>(), ".{0,9}", any::<[i64; 2]>()).prop_map(|(second, what, n)| LatencyRow {
        visit: 0,
        second,
        kind: "service".into(),
        what,
        value_ns: n[0],
        count: n[1],
    })
}

fn any_error() -> impl Strategy<Value = ErrorRow> {
    (any::<i32>(), ".{0,9}", any::<i64>(), any::<bool>()).prop_map(|(number, statement, count, retried)| ErrorRow {
        visit: 0,
        number,
        statement,
        count,
        retried,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_row_comes_back_as_it_was(
        rung in any_rung(),
        seconds in vec(any_second(), 0..40),
        counters in vec(any_counter(), 0..40),
        latency in vec(any_latency(), 0..40),
        errors in vec(any_error(), 0..5),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let writer = BundleWriter::create(folder.path()).unwrap();
        writer.write_manifest(&sample::manifest()).unwrap();
        writer.write_visit(0, &rung, &seconds, &counters, &latency, &errors).unwrap();
        let bundle = Bundle::open(folder.path()).unwrap();
        prop_assert_eq!(bundle.rungs, vec![rung]);
        prop_assert_eq!(bundle.seconds, seconds);
        prop_assert_eq!(bundle.counters, counters);
        prop_assert_eq!(bundle.latency, latency);
        prop_assert_eq!(bundle.errors, errors);
    }

    #[test]
    fn a_part_of_arbitrary_bytes_is_one_error_that_names_it(bytes in vec(any::<u8>(), 0..300), framed in any::<bool>()) {
        let folder = tempfile::tempdir().unwrap();
        sample::write_two_visits(folder.path());
        let part = folder.path().join("counters/visit-00001.parquet");
        let content = if framed { [b"PAR1".as_slice(), &bytes, b"PAR1"].concat() } else { bytes };
        std::fs::write(&part, content).unwrap();
        let said = Bundle::open(folder.path()).unwrap_err().to_string();
        prop_assert!(said.contains("counters/visit-00001.parquet"), "{}", said);
    }

    #[test]
    fn a_part_with_one_byte_changed_never_brings_the_reader_down(at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let folder = tempfile::tempdir().unwrap();
        sample::write_two_visits(folder.path());
        let part = folder.path().join("seconds/visit-00001.parquet");
        let mut bytes = std::fs::read(&part).unwrap();
        let at = at.index(bytes.len());
        bytes[at] = to;
        std::fs::write(&part, bytes).unwrap();
        let _ = Bundle::open(folder.path());
    }
}

#[test]
fn many_rows_span_pages() {
    let folder = tempfile::tempdir().unwrap();
    let writer = BundleWriter::create(folder.path()).unwrap();
    writer.write_manifest(&sample::manifest()).unwrap();
    let buckets: Vec<_> = (0..200_000)
        .map(|n| LatencyRow {
            what: format!("statement {}", n % 7),
            ..sample::latency(0, n, i64::from(n) * 977, 1)
        })
        .collect();
    let counters: Vec<_> = (0..60_000)
        .map(|n| sample::counter(0, (n % 3 > 0).then_some(n), &format!("status.{n}"), f64::from(n) * 1.1))
        .collect();
    writer
        .write_visit(0, &sample::rung(0), &[], &counters, &buckets, &[])
        .unwrap();
    let bundle = Bundle::open(folder.path()).unwrap();
    assert!(bundle.latency == buckets);
    assert!(bundle.counters == counters);
}
