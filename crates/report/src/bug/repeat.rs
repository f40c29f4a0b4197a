//! How to see it oneself: scaleprof's command line, and sysbench's for those who have only that.

use super::Section;
use super::words::block;
use scaleprof_bundle::{Bundle, Manifest, Workload};
use scaleprof_vocabulary::{LoopWord, WorkloadName};

/// The commands; none where the bundle does not know its own.
pub(super) fn section(bundle: &Bundle) -> Option<Section> {
    let manifest = &bundle.manifest;
    if manifest.command.is_empty() {
        return None;
    }
    let mut out = block(&filled_in(&manifest.command));
    if let Some(lines) = sysbench(manifest) {
        out.push_str("\nThe same statements with sysbench 1.0, at each number of connections, on a server with the settings above:\n\n");
        out.push_str(&block(&lines));
    }
    Some(("How to repeat", out))
}

/// The command line with a word for each value that was left out, and without what only one's own machine needs.
fn filled_in(command: &[String]) -> String {
    let mut words = Vec::new();
    let mut arguments = command.iter().peekable();
    while let Some(argument) = arguments.next() {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
            // `-S...`: an option of one letter and its value in one word.
            _ if !argument.starts_with("--")
                && argument.starts_with('-')
                && argument.is_char_boundary(2)
                && argument.len() > 2 =>
            {
                let (name, value) = argument.split_at(2);
                (name, Some(value.to_owned()))
            }
            _ => (argument.as_str(), None),
        };
        let takes_value = stands_for(name).is_some();
        let value = value.or_else(|| arguments.next_if(|_| takes_value).cloned());
        match (name, value) {
            ("--output" | "-o" | "--work-dir" | "--quiet" | "-q" | "--json" | "--yes" | "-y" | "--drop-schema", _) => {}
            (_, Some(value)) if value == "..." => {
                words.push(format!("{name} {}", stands_for(name).unwrap_or("VALUE")));
            }
            (_, Some(value)) => words.push(format!("{name} {value}")),
            (_, None) => words.push(argument.clone()),
        }
    }
    words.join(" ")
}

/// What stands for the value of an option that was left out.
fn stands_for(option: &str) -> Option<&'static str> {
    Some(match option {
        "--server" => "BUILD",
        "--workload" | "--setup" => "FILE.sql",
        "--set" => "NAME=VALUE",
        "--dsn" => "mysql://USER@HOST",
        "--socket" | "-S" => "SOCKET",
        "--user" | "-u" => "USER",
        "--defaults-file" | "--server-defaults-file" | "--ssl-ca" | "--ssl-cert" | "--ssl-key" => "FILE",
        "--output" | "-o" | "--work-dir" => "DIR",
        "--host" => "HOST",
        _ => return None,
    })
}

/// sysbench's command lines for its own workloads in a closed loop.
fn sysbench(manifest: &Manifest) -> Option<String> {
    let load: &Workload = &manifest.workload;
    let (tables, rows) = load.tables.zip(load.rows)?;
    let is_of_others = matches!(
        load.name,
        WorkloadName::Tpcc | WorkloadName::Script | WorkloadName::Watch | WorkloadName::Imported
    );
    if load.loop_kind != Some(LoopWord::Closed) || is_of_others {
        return None;
    }
    let known = ["uniform", "special", "pareto", "gaussian", "zipfian"];
    known.contains(&load.distribution.as_str()).then_some(())?;
    let options: String = load
        .options
        .iter()
        .filter(|(name, _)| !["transport", "arrivals", "repetition"].contains(&name.as_str()))
        .map(|(name, value)| format!(" --{name}={value}"))
        .collect();
    let name = load.name.name();
    let common = format!("sysbench {name} --tables={tables} --table-size={rows}{options}");
    let text = if load.protocol == "text" {
        " --db-ps-mode=disable"
    } else {
        ""
    };
    let seconds = manifest.ladder.seconds.max(10);
    Some(format!(
        "{common} prepare\n{common} --rand-type={}{text} --threads=N --time={seconds} run",
        load.distribution
    ))
}

#[cfg(test)]
mod tests {
    use super::filled_in;

    #[test]
    fn what_was_left_out_has_a_name() {
        let command = |line: &str| filled_in(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(
            command("scaleprof run --server ... --workload oltp_insert --set ... --seconds 8 --quiet --output ..."),
            "scaleprof run --server BUILD --workload oltp_insert --set NAME=VALUE --seconds 8"
        );
        assert_eq!(
            command("scaleprof run --dsn=... --workload=... --no-refine"),
            "scaleprof run --dsn mysql://USER@HOST --workload FILE.sql --no-refine"
        );
        assert_eq!(
            command("scaleprof run -S... -u ... --yes -yq --drop-schema -o... --seconds 8"),
            "scaleprof run -S SOCKET -u USER --seconds 8"
        );
    }
}
