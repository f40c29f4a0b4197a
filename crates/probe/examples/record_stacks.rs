//! Records walks through the stacks of a process, for the tests that do them again without it:
//! `record_stacks PID ROUNDS WHAT > FILE`. Each round stops every thread for a moment. Only walks on which framehop agrees are
//! kept, and one of each call path.

#[cfg(target_arch = "x86_64")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use scaleprof_probe::plain::StackUnwinder;
    use scaleprof_probe::symbols::SymbolSearch;
    use scaleprof_probe::{ProcessCode, ProcessNames, RecordedWalk, RecordedWalks, StartRegisters};
    use scaleprof_profile::Namer as _;
    use testing::stopped_thread::StoppedThread;

    let mut arguments = std::env::args().skip(1);
    let pid: u32 = arguments.next().ok_or("record_stacks PID ROUNDS WHAT")?.parse()?;
    let rounds: u32 = arguments.next().ok_or("how many rounds?")?.parse()?;
    let what = arguments.next().ok_or("what is it?")?;
    let mut code = ProcessCode::of(pid)?;
    let mut names = ProcessNames::new(SymbolSearch::default());
    names.follow(code.map());
    let mut memory = code.memory()?;
    let mut framehop = StackUnwinder::of_process(pid)?;
    let mut walks: BTreeMap<Vec<String>, RecordedWalk> = BTreeMap::new();
    for _ in 0..rounds {
        for entry in std::fs::read_dir(format!("/proc/{pid}/task"))? {
            let thread = entry?.file_name().to_string_lossy().parse()?;
            let stopped = StoppedThread::stop(thread);
            let Some(registers) = stopped.as_ref().and_then(StoppedThread::registers) else {
                continue;
            };
            let start = StartRegisters {
                pc: registers.rip,
                sp: registers.rsp,
                fp: registers.rbp,
                lr: 0,
            };
            let (stack, mut walk) = RecordedWalk::of(&code, start, &mut memory);
            let other = framehop.unwind(start.pc, start.sp, start.fp, &mut memory);
            drop(stopped);
            if stack.user != other.user {
                continue;
            }
            for (position, address) in stack.user.iter().enumerate() {
                let exact = stack.interrupted.contains(&(position as u16));
                let frames = names.frames(address - u64::from(!exact), false);
                let function = frames.last().and_then(|frame| frame.function.clone());
                walk.functions.push(function.as_deref().unwrap_or("?").to_owned());
            }
            // Frames under way, with and without a frame of their own, are call paths of their own.
            let mut path = walk.functions.clone();
            path.push(format!("{}", stack.user.first().copied().unwrap_or_default() & 0xff));
            walks.entry(path).or_insert(walk);
        }
        std::thread::sleep(Duration::from_micros(2300));
    }
    let walks = walks.into_values().take(24).collect();
    println!("{}", serde_json::to_string(&RecordedWalks::of(&code, what, walks))?);
    Ok(())
}

#[cfg(not(target_arch = "x86_64"))]
fn main() {
    eprintln!("record_stacks reads the registers of x86-64");
    std::process::exit(2);
}
