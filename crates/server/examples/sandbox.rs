//! Starts a server under test and holds it until standard input ends:
//!
//!     cargo run -p scaleprof-server --example sandbox -- [BASEDIR|BINARY] [NAME=VALUE...]

use scaleprof_server::*;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == janitor::ARGUMENT) {
        janitor::main_loop(std::io::stdin().as_fd().try_clone_to_owned()?);
        return Ok(());
    }
    let installation = match arguments.iter().position(|argument| !argument.contains('=')) {
        Some(at) => Installation::at(Path::new(&arguments.remove(at)))?,
        None => Installation::distribution()?,
    };
    println!("{installation}");
    let asked = ServerSettings {
        set: arguments,
        ..ServerSettings::default()
    };
    let settings = Settings::new(asked)?;
    let work = WorkFolder::open(&WorkFolder::default_path())?;
    let cache = Cache::open(&work)?;
    let placement = Placement::on_this_machine(None, None)?;
    println!("{}", placement.reason);
    let key = DataKey::new(&installation, &settings, "empty")?;
    let builder =
        || SandboxBuilder::new(installation.clone(), settings.clone(), work.clone()).placement(placement.clone());
    let janitor = Janitor::spawn()?;
    let prepared = match cache.get(&key)? {
        Some(prepared) => prepared,
        None => {
            let began = Instant::now();
            let sandbox = builder().janitor(janitor.clone()).start_fresh()?;
            let prepared = sandbox.into_prepared(&cache, &key)?;
            println!("prepared in {:.1} s", began.elapsed().as_secs_f64());
            prepared
        }
    };
    let began = Instant::now();
    let sandbox = builder().janitor(janitor).start_from(&prepared)?;
    println!(
        "process {}, {}, up in {:.2} s",
        sandbox.pid(),
        sandbox.endpoint(),
        began.elapsed().as_secs_f64()
    );
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    Ok(sandbox.stop()?)
}
