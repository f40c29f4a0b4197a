//! Our own command line, as a bundle keeps it: without what should not be given to others.

use crate::arguments::Arguments;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, CommandFactory as _};
use scaleprof_experiment::names_something;

/// Our command line behind the program's name; a path that is not UTF-8 shows with replacement characters.
pub(crate) fn our_arguments() -> impl Iterator<Item = String> {
    std::env::args_os()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into_owned())
}

/// Options whose numbers say nothing of anybody; of all others the values are hidden, unless they are words that scaleprof itself lists.
const OF_NUMBERS: [&str; 25] = [
    "buffer_pool",
    "cache_size",
    "client_threads",
    "connections",
    "cpus",
    "cpus_client",
    "cpus_others",
    "cpus_server",
    "frequency",
    "idle_connections",
    "mix",
    "neighbours",
    "pid",
    "rate",
    "repeats",
    "replicas",
    "rows",
    "seconds",
    "seed",
    "tables",
    "think_times",
    "throughput",
    "wait_budget",
    "wait_stacks",
    "warehouses",
];

/// What the user typed, option by option, with three dots for every value but numbers, words of closed sets, workloads and settings
/// that are such.
pub(crate) fn public_command(arguments: impl Iterator<Item = String>) -> Vec<String> {
    let program = std::iter::once("scaleprof".to_owned());
    let mut out: Vec<String> = program.clone().collect();
    let whole = Arguments::command();
    // It was parsed before: else we would not be here.
    let Ok(matches) = whole.clone().try_get_matches_from(program.chain(arguments)) else {
        return out;
    };
    // Options of every command are typed behind the command.
    let global = typed(&whole, &matches);
    let (mut command, mut matches) = (&whole, &matches);
    while let Some((name, inner)) = matches.subcommand() {
        let Some(known) = command.find_subcommand(name) else {
            break;
        };
        out.push(name.to_owned());
        out.extend(typed(known, inner));
        (command, matches) = (known, inner);
    }
    out.extend(global);
    out
}

/// The options and other arguments of one command, in the order in which they were typed.
fn typed(command: &Command, matches: &ArgMatches) -> Vec<String> {
    let mut found: Vec<(usize, String)> = Vec::new();
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        if matches.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        let name = match (argument.get_long(), argument.get_short()) {
            (Some(long), _) => Some(format!("--{long}")),
            (None, Some(short)) => Some(format!("-{short}")),
            (None, None) => None,
        };
        let places = matches.indices_of(id).into_iter().flatten();
        if !argument.get_action().takes_values() {
            found.extend(places.zip(name));
            continue;
        }
        let values = matches.get_raw(id).into_iter().flatten();
        let values = values.map(|value| shown(argument, &value.to_string_lossy()));
        let mut told: Vec<(usize, String)> = places.zip(values).collect();
        // What was typed as one list is one.
        if let (Some(delimiter), Some((place, _))) = (argument.get_value_delimiter(), told.first()) {
            let list: Vec<&str> = told.iter().map(|(_, value)| value.as_str()).collect();
            told = Vec::from([(*place, list.join(&delimiter.to_string()))]);
        }
        for (place, value) in told {
            found.extend(name.iter().cloned().chain([value]).map(|word| (place, word)));
        }
    }
    found.sort_by_key(|(place, _)| *place);
    found.into_iter().map(|(_, word)| word).collect()
}

/// The value of an option as it may be shown.
fn shown(argument: &Arg, value: &str) -> String {
    // An alias and another case are told as the name that the help lists: one word, which a shell takes as it stands.
    let listed = argument.get_possible_values();
    if let Some(word) = listed
        .iter()
        .find(|word| word.matches(value, argument.is_ignore_case_set()))
    {
        return word.get_name().to_owned();
    }
    let id = argument.get_id().as_str();
    let is_public = match id {
        "workload" => {
            value.parse::<scaleprof_workload::OltpWorkloadKind>().is_ok() || value == scaleprof_workload::tpcc::NAME
        }
        "set" | "workload_option" => value.split_once('=').is_some_and(|(name, value)| {
            is_setting(name) && !names_something(name) && value.split(',').all(is_number_or_switch)
        }),
        _ => OF_NUMBERS.contains(&id) && (is_number_or_switch(value) || is_numbers(value)),
    };
    match is_public {
        true => value.to_owned(),
        false => "...".to_owned(),
    }
}

/// A ladder or a list of CPUs: `1,2,4..512`, `0-3,8`.
fn is_numbers(value: &str) -> bool {
    let is_list = |c: char| c.is_ascii_digit() || matches!(c, ',' | '.' | '-');
    value.starts_with(|c: char| c.is_ascii_digit()) && value.chars().all(is_list)
}

fn is_setting(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

/// `4`, `0.5`, `128M`, `ON`, and the words of well-known settings. Any other word may be somebody's name.
fn is_number_or_switch(value: &str) -> bool {
    const WORDS: [&str; 14] = [
        "on",
        "off",
        "true",
        "false",
        "default",
        "none",
        "all",
        "o_direct",
        "o_direct_no_fsync",
        "o_dsync",
        "fsync",
        "pool-of-threads",
        "one-thread-per-connection",
        "crc32",
    ];
    let digits = value.strip_suffix(['k', 'K', 'm', 'M', 'g', 'G']).unwrap_or(value);
    digits.parse::<f64>().is_ok_and(f64::is_finite) || WORDS.contains(&value.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn public(line: &str) -> String {
        public_command(line.split(' ').map(str::to_owned)).join(" ")
    }

    #[test]
    fn places_and_accounts_are_hidden() {
        assert_eq!(
            public("run --server /opt/secret/mysql --set innodb_spin_wait_delay=6 --seconds 5 --output=/home/anna/x"),
            "scaleprof run --server ... --set innodb_spin_wait_delay=6 --seconds 5 --output ..."
        );
        assert_eq!(
            public("run --workload customers.sql --set init_connect=x --set innodb_data_home_dir=anna"),
            "scaleprof run --workload ... --set ... --set ..."
        );
        assert_eq!(
            public("run --set sync_binlog=1 --set innodb_flush_method=O_DIRECT --workload oltp_anna.sql"),
            "scaleprof run --set sync_binlog=1 --set innodb_flush_method=O_DIRECT --workload ..."
        );
        assert_eq!(
            public("run --user 2020 -S 3306 -o 7 --setup=anna.sql -q"),
            "scaleprof run --user ... --socket ... --output ... --setup ... --quiet"
        );
        assert_eq!(
            public("run --set server_id=3232235777 --connections 1,2,4..512 --cpus-server=0-3,8"),
            "scaleprof run --set ... --connections 1,2,4..512 --cpus-server 0-3,8"
        );
        assert_eq!(
            public("run --distribution zipfian --isolation read-committed --no-refine"),
            "scaleprof run --distribution zipfian --isolation read-committed --no-refine"
        );
        assert_eq!(
            public_command(["run", "--isolation", "READ COMMITTED"].map(str::to_owned).into_iter()),
            ["scaleprof", "run", "--isolation", "read-committed"]
        );
        assert_eq!(
            public("run --workload-option point_selects=1 --dsn mysql://anna@db --workload oltp_insert"),
            "scaleprof run --workload-option point_selects=1 --dsn ... --workload oltp_insert"
        );
    }

    #[test]
    fn switches_and_values_in_one_word_are_read_as_the_program_reads_them() {
        assert_eq!(
            public("run -yu 2020 -qS 3306"),
            "scaleprof run --yes --user ... --socket ... --quiet"
        );
        assert_eq!(
            public("run -yu2020 -S/run/anna.sock -o7"),
            "scaleprof run --yes --user ... --socket ... --output ..."
        );
        assert_eq!(
            public("attach -p 4711 -F99"),
            "scaleprof attach --pid 4711 --frequency 99"
        );
        assert_eq!(
            public("import /home/anna/perf.data --connections 8,64 --throughput 1000,900.5"),
            "scaleprof import ... --connections 8,64 --throughput 1000,900.5"
        );
        assert_eq!(
            public("experiment resume /home/anna/x"),
            "scaleprof experiment resume ..."
        );
    }

    /// The options of the commands that write bundles.
    fn of_bundles() -> Vec<Arg> {
        let command = Arguments::command();
        let commands = ["run", "attach", "import"].map(|name| command.find_subcommand(name).expect("a command"));
        commands
            .iter()
            .flat_map(|command| command.get_arguments().cloned())
            .collect()
    }

    #[test]
    fn options_whose_numbers_are_shown_are_those_of_commands_that_write_bundles() {
        let all = of_bundles();
        let unknown: Vec<&&str> = OF_NUMBERS
            .iter()
            .filter(|id| !all.iter().any(|argument| argument.get_id() == **id))
            .collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    #[test]
    fn of_all_other_options_no_value_is_shown() {
        let mut hidden = 0;
        for argument in of_bundles() {
            let id = argument.get_id().as_str();
            let is_listed = !argument.get_possible_values().is_empty();
            let is_shown = OF_NUMBERS.contains(&id) || ["workload", "set", "workload_option"].contains(&id);
            if is_listed || is_shown || !argument.get_action().takes_values() {
                continue;
            }
            hidden += 1;
            for value in ["7", "anna", "on", "oltp_insert", "1,2", "db1=5"] {
                assert_eq!(shown(&argument, value), "...", "{id}");
            }
        }
        assert!(hidden > 15, "only {hidden}");
    }
}
