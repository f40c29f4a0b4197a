//! Two made-up runs to compare: what differs between them was planted.

use scaleprof_vocabulary::ThreadState;
use testing::planted;

use planted::{Cost, USUAL, run, work};
use scaleprof_bundle::{Bundle, Missing, SettingRow};

/// Why a run has no stacks.
pub const NOT_WATCHED: &str = "the server ran on another machine, so its threads could not be watched";

/// A path that is planted beside the usual work: state, functions, microseconds at each of [`RUNGS`] in A and in B.
type Planted = (
    ThreadState,
    &'static [&'static str],
    [f64; RUNGS.len()],
    [f64; RUNGS.len()],
);

/// Connections of both; A alone has the first, B alone the last.
const RUNGS: [u32; 6] = [1, 4, 16, 64, 256, 512];

/// One of each kind of change.
const PLANTED: [Planted; 6] = [
    (
        ThreadState::Spin,
        &["start_thread", "do_command", "change", "latch"],
        [6.0; 6],
        [6.0, 6.0, 8.0, 20.0, 60.0, 90.0],
    ),
    (
        ThreadState::Cpu,
        &["start_thread", "do_command", "parse", "digest(char const*)"],
        [5.0; 6],
        [14.0; 6],
    ),
    (
        ThreadState::Cpu,
        &["start_thread", "do_command", "search", "old_dictionary"],
        [8.0; 6],
        [0.0; 6],
    ),
    (
        ThreadState::Cpu,
        &["start_thread", "do_command", "search", "new_dictionary"],
        [0.0; 6],
        [5.0; 6],
    ),
    (
        ThreadState::Cpu,
        &["start_thread", "do_command", "commit", "checksum"],
        [20.0; 6],
        [9.0; 6],
    ),
    (
        ThreadState::Lock,
        &[
            "start_thread",
            "do_command",
            "commit",
            "log_write_up_to",
            "pthread_mutex_lock",
            "futex_wait [k]",
        ],
        [0.0, 30.0, 90.0, 300.0, 900.0, 1800.0],
        [0.0, 110.0, 300.0, 900.0, 2700.0, 5400.0],
    ),
];

/// The pair of that name: `diff`; `diff-products`, of two products; `diff-bare`, whose A was not watched; `diff-apart`, which
/// have no rung with stacks in common; `diff-once`, with one measurement a rung.
pub fn named(name: &str) -> Option<[Bundle; 2]> {
    let repeats = if name == "diff-once" { 1 } else { 3 };
    let [mut a, mut b] = [made(0, repeats), made(1, repeats)];
    match name {
        "diff" | "diff-once" => {}
        "diff-products" => {
            b.manifest.server.product = "MariaDB".into();
            b.manifest.server.version = "10.11.9".into();
        }
        "diff-bare" => {
            a.samples = Default::default();
            a.states.clear();
            a.manifest.missing.push(Missing {
                figure: "ledger".into(),
                reason: NOT_WATCHED.into(),
            });
        }
        "diff-apart" => {
            let only_first = |measurement: i32| {
                let mut rungs = a.measurements.iter();
                rungs.any(|rung| rung.measurement == measurement && rung.connections == 1)
            };
            a.samples = a.samples.rows().filter(|row| only_first(row.measurement)).collect();
        }
        _ => return None,
    }
    Some([a, b])
}

/// A or B, by its place.
fn made(side: usize, repeats: i32) -> Bundle {
    let usual = work();
    let lacks = [RUNGS.len() - 1, 0][side];
    let rungs = RUNGS.iter().enumerate().filter(|(at, _)| *at != lacks);
    let rungs: Vec<_> = rungs
        .map(|(at, connections)| {
            let mut costs: Vec<Cost<'_>> = usual
                .iter()
                .map(|(path, micros)| (ThreadState::Cpu, path.as_slice(), *micros))
                .collect();
            costs.retain(|(_, path, _)| PLANTED.iter().all(|(_, planted, ..)| planted != path));
            let planted = PLANTED
                .iter()
                .map(|(state, path, a, b)| (*state, *path, [a, b][side][at]));
            costs.extend(planted.filter(|(.., micros)| *micros > 0.0));
            let sum = |wanted: fn(ThreadState) -> bool| -> f64 {
                let of = costs.iter().filter(|(state, ..)| wanted(*state));
                of.map(|(.., micros)| micros).sum()
            };
            let (all, on_cpu) = (sum(|_| true), sum(|state| state != ThreadState::Lock));
            // As many as the connections do one after the other, or as two CPUs allow.
            let rate = (f64::from(*connections) * 0.9e6 / all).min(1.96e6 / on_cpu);
            (*connections, rate, costs)
        })
        .collect();
    let mut bundle = run(&rungs, repeats, 10, USUAL, 1 + side as u64);
    // Waits fit into what the CPUs leave of the connections' time.
    for row in &mut bundle.states {
        row.nanoseconds = row.nanoseconds.max(0);
    }
    let manifest = &mut bundle.manifest;
    manifest.machine.memory_bytes = Some(16 << 30);
    manifest.machine.cpu_model = "Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz".into();
    manifest.machine.kernel = ["6.1.0-28-amd64", "6.12.6-amd64"][side].into();
    manifest.server.version = ["5.6.14", "5.6.15"][side].into();
    manifest.server.build_id = Some(["5a8e1f0c2b7d44e9a1c0", "77c2aa0e9d1b4f3c8e55"][side].into());
    // What may not be in a page that is given away.
    manifest.command = ["scaleprof", "run", "--password", "geheim"].map(String::from).to_vec();
    bundle.settings = Vec::from([
        SettingRow::new("innodb_sync_spin_loops", ["30", "200"][side]),
        SettingRow::new("version_comment", ["</script><b>made to break a page</b>", ""][side]),
        SettingRow::new("sql_mode", ["NO_ENGINE_SUBSTITUTION", ""][side]),
        SettingRow::new(["only_in_a", "only_in_b"][side], "1"),
    ]);
    bundle
}
