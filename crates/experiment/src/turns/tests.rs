use super::*;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Instant;

/// A turn.
const TURN_NS: u64 = 250_000_000;

/// A process that does nothing but work, for a server.
struct Busy(testing::Killed);

impl Busy {
    fn start() -> Busy {
        let mut shell = Command::new("sh");
        Busy(testing::Killed::start(
            shell.args(["-c", "while :; do :; done"]).process_group(0),
        ))
    }

    fn player(&self) -> Player {
        Player {
            server: Pauser::of(self.0.pid()).expect("a number"),
            rests: Some(Arc::new(MachineRests::new(None))),
        }
    }

    /// Seconds that it has been on a CPU, and that it has waited for one, which on a busy machine is what it does (proc(5), schedstat).
    fn ready(&self) -> [f64; 2] {
        let clock = scaleprof_probe::process_cpu_clock(self.0.pid()).expect("it runs");
        let text = std::fs::read_to_string(format!("/proc/{}/schedstat", self.0.pid())).expect("it runs");
        let queued = text
            .split_whitespace()
            .nth(1)
            .and_then(|field| field.parse::<f64>().ok());
        [clock.as_secs_f64(), queued.expect("nanoseconds") / 1e9]
    }

    fn stands(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.pid())).expect("it runs");
        stat.rsplit(')').next().expect("fields").trim_start().starts_with('T')
    }
}

/// A load of so many seconds by its own clock. Gives for how many of them its server was on a CPU, and for how many it waited for one.
fn measurement(seat: &Seat, number: u32, server: &Busy, seconds: f64, stop: &AtomicBool) -> [f64; 2] {
    seat.ready(number, server.player(), stop);
    let (clock, before) = (seat.clock(), server.ready());
    let until = clock.now_ns() + (seconds * 1e9) as u64;
    while clock.now_ns() < until && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(2));
    }
    let after = server.ready();
    seat.done();
    [after[0] - before[0], after[1] - before[1]]
}

#[test]
fn servers_work_in_turns_and_each_second_of_a_load_has_a_second_of_work() {
    let servers = [Busy::start(), Busy::start(), Busy::start()];
    let (turns, seats) = Turns::new(3, TURN_NS);
    let never = AtomicBool::new(false);
    let began = Instant::now();
    let used: Vec<[f64; 2]> = std::thread::scope(|scope| {
        let runs: Vec<_> = seats
            .into_iter()
            .zip(&servers)
            .map(|(seat, server)| {
                scope.spawn(|| {
                    let seat = seat;
                    let _leaving = seat.clone().leaving();
                    measurement(&seat, 0, server, 1.5, &never)
                })
            })
            .collect();
        scope.spawn(|| turns.conduct());
        runs.into_iter().map(|run| run.join().expect("its end")).collect()
    });
    let all = began.elapsed().as_secs_f64();
    assert!(all > 4.4, "three times 1.5 s one after the other took {all} s");
    for used in &used {
        // It is ready to run in all of its turns, and stopped in the others'. A turn is shorter by no more than a fifth for the stop at its end.
        let ready = used[0] + used[1];
        assert!(
            used[0] < 1.55 && ready > 1.2,
            "{used:?} s on a CPU and waiting for one in 1.5 s"
        );
    }
    for server in &servers {
        assert!(!server.stands(), "it was left standing");
    }
}

#[test]
fn a_run_that_ends_or_misses_a_measurement_holds_up_nobody() {
    let servers = [Busy::start(), Busy::start()];
    let (turns, seats) = Turns::new(2, TURN_NS);
    let never = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let [first, second] = <[Seat; 2]>::try_from(seats).expect("two");
        scope.spawn(|| turns.conduct());
        let (one, other) = (&servers[0], &servers[1]);
        let never = &never;
        let long = scope.spawn(move || {
            let _leaving = first.clone().leaving();
            measurement(&first, 0, one, 0.6, never);
            // The other missed this one.
            measurement(&first, 1, one, 0.6, never);
            measurement(&first, 2, one, 0.6, never);
            // And the other is gone.
            measurement(&first, 3, one, 0.6, never)
        });
        scope.spawn(move || {
            let _leaving = second.clone().leaving();
            measurement(&second, 0, other, 0.3, never);
            measurement(&second, 2, other, 0.6, never);
        });
        let used = long.join().expect("its end");
        assert!(
            used[0] < 0.65 && used[0] + used[1] > 0.48,
            "{used:?} s on a CPU and waiting for one in 0.6 s"
        );
    });
    assert!(!servers[0].stands());
}

#[test]
fn who_is_asked_to_stop_waits_for_no_turn_and_leaves_nobody_standing() {
    let servers = [Busy::start(), Busy::start()];
    let (turns, seats) = Turns::new(2, TURN_NS);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let runs: Vec<_> = seats
            .into_iter()
            .zip(&servers)
            .map(|(seat, server)| {
                scope.spawn(|| {
                    let seat = seat;
                    let _leaving = seat.clone().leaving();
                    measurement(&seat, 0, server, 60.0, &stop)
                })
            })
            .collect();
        scope.spawn(|| turns.conduct());
        std::thread::sleep(Duration::from_millis(700));
        stop.store(true, Ordering::Relaxed);
        for run in runs {
            run.join().expect("its end");
        }
    });
    assert!(servers.iter().all(|server| !server.stands()));
    // Before the first turn too: the second run never comes.
    let (turns, seats) = Turns::new(2, TURN_NS);
    std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            let _leaving = seats[0].clone().leaving();
            measurement(&seats[0], 0, &servers[0], 1.0, &stop)
        });
        scope.spawn(|| turns.conduct());
        run.join().expect("its end");
        drop(seats[1].clone().leaving());
    });
    assert!(!servers[0].stands());
}

#[test]
fn a_server_that_does_not_stand_still_when_it_is_to_rest_is_told() {
    let (still, mut dead) = (Busy::start(), Busy::start());
    // It is not waited for, so that its number stays its own; and it never stands.
    dead.0.0.kill().expect("killed");
    let (turns, seats) = Turns::new(2, TURN_NS);
    let never = AtomicBool::new(false);
    let players = [still.player(), dead.player()];
    let told: Vec<Option<String>> = std::thread::scope(|scope| {
        let runs: Vec<_> = seats
            .into_iter()
            .zip(players)
            .map(|(seat, player)| {
                let never = &never;
                scope.spawn(move || {
                    let _leaving = seat.clone().leaving();
                    seat.ready(0, player, never);
                    let until = seat.clock().now_ns() + 2 * TURN_NS;
                    while seat.clock().now_ns() < until {
                        std::thread::sleep(Duration::from_millis(2));
                    }
                    seat.done();
                    seat.restless()
                })
            })
            .collect();
        scope.spawn(|| turns.conduct());
        runs.into_iter().map(|run| run.join().expect("its end")).collect()
    });
    assert_eq!(told[0], None);
    let told = told[1].as_deref().unwrap_or_default();
    assert!(told.contains("was not fully paused") && told.contains("of"), "{told}");
}

#[test]
fn who_waited_for_another_to_be_prepared_and_was_asked_to_stop_prepares_nothing() {
    let (_, seats) = Turns::new(2, TURN_NS);
    let stop = AtomicBool::new(false);
    let first = seats[0].prepare_alone(&stop).expect("nobody else does");
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| matches!(seats[1].prepare_alone(&stop), Err(RunError::Stopped)));
        stop.store(true, Ordering::Relaxed);
        drop(first);
        assert!(waits.join().expect("its end"));
    });
}
