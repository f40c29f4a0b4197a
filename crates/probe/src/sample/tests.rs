use super::*;
use crate::disks::DiskCounts;
use crate::thread_walk::ThreadUse;
use proptest::prelude::*;

fn lack<T>(why: &str) -> Result<T, String> {
    Err(why.to_owned())
}

fn nothing() -> Sample {
    Sample {
        taken: Instant::now(),
        cost: Duration::ZERO,
        epoch: 1,
        server: lack("server"),
        server_clock: lack("clock"),
        server_io: lack("io"),
        switches: lack("switches"),
        client: lack("client"),
        machine: lack("machine"),
        network: lack("network"),
        disk: lack("disk"),
        cgroup: lack("cgroup"),
        hardware: lack("hardware"),
        layout: Vec::new(),
        hardware_missing: Vec::new(),
        hardware_is_filtered: false,
    }
}

fn whole(voluntary: u64, involuntary: u64) -> Result<SwitchCounts, String> {
    Ok(SwitchCounts::Whole(Switches { voluntary, involuntary }))
}

fn cgroup(switches: u64) -> Result<CgroupCounts, String> {
    Ok(CgroupCounts {
        cpu_nanoseconds: 2_000_000_000,
        switches,
        migrations: 5,
    })
}

fn zero_cgroup() -> Result<CgroupCounts, String> {
    Ok(CgroupCounts::default())
}

fn value(counters: &[Counter], name: &str) -> Option<f64> {
    counters.iter().find(|c| c.name == name).map(|c| c.value)
}

#[test]
fn what_could_not_be_read_is_missing_with_its_reason_and_never_zero() {
    let all = missing(&nothing(), &nothing());
    assert_eq!(delta(&nothing(), &nothing()), []);
    assert_eq!(all.len(), 34);
    assert!(all.iter().all(|m| !m.reason.is_empty()));
    let names: BTreeSet<_> = all.iter().map(|m| m.figure).collect();
    assert_eq!(names.len(), all.len(), "every figure once");
}

#[test]
fn every_figure_is_either_there_or_missing() {
    let mut before = nothing();
    let mut after = nothing();
    before.cgroup = zero_cgroup();
    after.cgroup = cgroup(10_000);
    before.switches = whole(0, 0);
    after.switches = whole(9_000, 1_000);
    let (counters, missing) = (delta(&before, &after), missing(&before, &after));
    assert_eq!(counters.len() + missing.len(), 34);
    assert_eq!(value(&counters, "server.voluntary_switches"), Some(9_000.0));
    assert_eq!(value(&counters, "hw.task_clock_seconds"), Some(2.0));
}

#[test]
fn switches_that_ended_threads_took_away_are_scaled_by_the_exact_total() {
    let mut before = nothing();
    let mut after = nothing();
    before.cgroup = zero_cgroup();
    after.cgroup = cgroup(10_000);
    before.switches = whole(0, 0);
    after.switches = whole(6_000, 2_000);
    let counters = delta(&before, &after);
    let counter = counters
        .iter()
        .find(|c| c.name == "server.involuntary_switches")
        .expect("there");
    assert_eq!((counter.value, counter.running_share), (2_500.0, Some(0.8)));

    after.switches = whole(3_000, 1_000);
    assert_eq!(
        value(&delta(&before, &after), "server.voluntary_switches"),
        None,
        "under half was seen"
    );
    after.switches = whole(12_000, 1_000);
    assert_eq!(
        value(&delta(&before, &after), "server.voluntary_switches"),
        None,
        "more than there were"
    );
}

#[test]
fn without_root_the_cpu_time_of_ended_threads_gives_the_loss_away() {
    let walk = |voluntary, cpu_nanoseconds| {
        let switches = Switches {
            voluntary,
            involuntary: 0,
        };
        Ok(SwitchCounts::ByThread(ThreadUses::from([(
            1,
            ThreadUse {
                switches,
                cpu_nanoseconds,
            },
        )])))
    };
    let (mut before, mut after) = (nothing(), nothing());
    (before.switches, after.switches) = (walk(0, 0), walk(800, 80_000_000));
    (before.server_clock, after.server_clock) = (Ok(Duration::ZERO), Ok(Duration::from_millis(100)));
    let counters = delta(&before, &after);
    let counter = counters
        .iter()
        .find(|c| c.name == "server.voluntary_switches")
        .expect("there");
    assert_eq!((counter.value, counter.running_share), (800.0, Some(0.8)));
    after.server_clock = Ok(Duration::from_millis(1000));
    assert_eq!(value(&delta(&before, &after), "server.voluntary_switches"), None);
}

#[test]
fn a_count_that_goes_backwards_is_missing() {
    let disk = |writes| {
        Ok(DiskCounts {
            writes,
            flushes: None,
            ..DiskCounts::default()
        })
    };
    let (mut before, mut after) = (nothing(), nothing());
    before.disk = disk(7);
    after.disk = disk(6);
    let reasons = missing(&before, &after);
    assert!(
        reasons
            .iter()
            .any(|m| m.figure == "disk.writes" && m.reason.contains("backwards"))
    );
    assert!(
        reasons
            .iter()
            .any(|m| m.figure == "disk.flushes" && m.reason.contains("5.5"))
    );
}

#[test]
fn samples_of_both_sides_of_a_pause_do_not_compare() {
    let (mut before, mut after) = (nothing(), nothing());
    before.cgroup = cgroup(1_000_000);
    after.cgroup = zero_cgroup();
    after.epoch = 2;
    assert!(
        missing(&before, &after)
            .iter()
            .any(|m| m.figure == "server.migrations" && m.reason.contains("off"))
    );
}

proptest! {
    #[test]
    fn no_counts_whatever_give_a_figure_that_is_not_a_number(a: [u64; 5], b: [u64; 5]) {
        let fill = |w: [u64; 5]| {
            let mut sample = nothing();
            sample.switches = whole(w[0], w[1]);
            sample.cgroup = Ok(CgroupCounts { cpu_nanoseconds: w[2], switches: w[3], migrations: w[4] });
            sample
        };
        let (before, after) = (fill(a), fill(b));
        for counter in delta(&before, &after) {
            prop_assert!(counter.value.is_finite() && counter.value >= 0.0, "{:?}", counter);
        }
    }
}
