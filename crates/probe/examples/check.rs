//! Prints what `check` finds: `cargo run -p scaleprof-probe --example check -- [SERVER BINARY]`.

use std::path::PathBuf;

fn main() {
    let binary = std::env::args_os().nth(1).map(PathBuf::from);
    println!("{:#?}", scaleprof_probe::MachineFacts::read());
    for item in scaleprof_probe::check(binary.as_deref(), 2000) {
        println!("{:?}\t{}\t{}", item.status, item.topic, item.message);
        if let Some(mend) = item.fix {
            println!("\t\t-> {mend}");
        }
    }
}
