//! Checks TPC-C's twelve consistency conditions on the tables of any schema, also on those of another kit with the same columns.
//!
//!     cargo run -p scaleprof-workload --example tpcc_check -- SOCKET SCHEMA

use scaleprof_wire::{Client, Credentials, Endpoint};
use scaleprof_workload::tpcc::check_consistency;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [socket, schema] = &arguments[..] else {
        return Err("use: tpcc_check SOCKET SCHEMA".into());
    };
    let mut client = Client::connect(&Endpoint::Unix(socket.into()), &Credentials::user("root"))?;
    let violations = check_consistency(&mut client, schema, &AtomicBool::new(false))?;
    for violation in &violations {
        println!("{violation}");
    }
    if violations.is_empty() {
        println!("all twelve conditions hold");
    }
    Ok(ExitCode::from(u8::from(!violations.is_empty())))
}
