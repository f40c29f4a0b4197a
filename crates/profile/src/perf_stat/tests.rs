use super::*;

#[test]
fn an_event_in_two_groups_and_a_summary_behind_intervals_count_once() {
    let groups = "1000;;cycles;1;100.00;;\n500;;instructions;1;100.00;;\n1010;;cycles;1;100.00;;\n";
    let stat = PerfStat::parse(groups).unwrap();
    assert_eq!(stat.counts["cycles"].value, Some(1000.0));
    let intervals = "     1.000000000              1,000      cycles\n     2.000000000              2,000      cycles\n\
                     \n Performance counter stats for process id '7':\n\n             3,000      cycles\n";
    assert_eq!(PerfStat::parse(intervals).unwrap().counts["cycles"].value, Some(3000.0));
}

fn value(stat: &PerfStat, event: &str) -> Option<f64> {
    stat.counts
        .get(event)
        .unwrap_or_else(|| panic!("no {event} in {stat:?}"))
        .value
}

/// As perf 6.1 prints it.
const TEXT: &str = "
 Performance counter stats for process id '1234':

          8,000.52 msec task-clock                       #    1.990 CPUs utilized          
            12,345      context-switches                 #    1.543 K/sec                  
     1,234,567,890      cycles                           #    2.1 GHz                      (83.21%)
   <not supported>      instructions                                                
               999      cpu-migrations:u                                                       ( +-  0.12% )

       4.019593400 seconds time elapsed

       7.901871000 seconds user
       0.100000000 seconds sys
";

#[test]
fn text_is_read_with_its_units_and_shares() {
    let stat = PerfStat::parse(TEXT).expect("counts");
    assert_eq!(stat.elapsed_seconds, Some(4.0195934));
    assert_eq!(stat.counts.len(), 5, "{stat:?}");
    assert_eq!(value(&stat, "task-clock"), Some(8000.52 * 1e-3));
    assert_eq!(value(&stat, "context-switches"), Some(12345.0));
    assert_eq!(value(&stat, "cycles"), Some(1_234_567_890.0));
    assert_eq!(stat.counts["cycles"].running_share, 0.8321);
    assert_eq!(value(&stat, "instructions"), None);
    assert_eq!(value(&stat, "cpu-migrations:u"), Some(999.0));
}

#[test]
fn repeated_runs_have_their_mean_and_no_share() {
    let text = "
 Performance counter stats for 'true' (2 runs):

              0.71 msec task-clock                       #    0.170 CPUs utilized            ( +-  0.03% )

          0.004164 +- 0.000496 seconds time elapsed  ( +- 11.92% )
";
    let stat = PerfStat::parse(text).expect("counts");
    assert_eq!(stat.elapsed_seconds, Some(0.004164));
    assert_eq!(value(&stat, "task-clock"), Some(0.71 * 1e-3));
    assert_eq!(stat.counts["task-clock"].running_share, 1.0);
}

#[test]
fn fields_are_read_whatever_separates_them() {
    for separator in [",", ";", "|", "\t"] {
        let text = "# started on Sun Nov 22\n\n0.90,msec,task-clock,901392,100.00,0.009,CPUs utilized\n\
                    6,,context-switches,901392,50.00,6.656,K/sec\n<not supported>,,cycles,0,100.00,,\n\
                    18161636,ns,duration_time,18161636,100.00,21.513,G/sec\n";
        let stat = PerfStat::parse(&text.replace(',', separator)).expect("counts");
        assert_eq!(stat.elapsed_seconds, Some(18_161_636.0 * 1e-9), "{separator}");
        assert_eq!(value(&stat, "task-clock"), Some(0.90 * 1e-3));
        assert_eq!(stat.counts["context-switches"].running_share, 0.5);
        assert_eq!((value(&stat, "cycles"), stat.counts.len()), (None, 3));
    }
    let with_variance = "0.43,msec,task-clock,31.68%,429590,25.00,0.167,CPUs utilized\n";
    let stat = PerfStat::parse(with_variance).expect("counts");
    assert_eq!(
        (stat.counts["task-clock"].running_share, stat.elapsed_seconds),
        (0.25, None)
    );
}

#[test]
fn intervals_are_added_up_in_every_form() {
    let fields = "     0.100892621;0.77;msec;task-clock;768885;100.00;0.008;CPUs utilized\n     0.100892621;1;;faults;7;100.00;;\n     \
                  0.254609381;0.05;msec;task-clock;54441;100.00;0.001;CPUs utilized\n     0.254609381;<not counted>;;faults;0;100.00;;\n";
    let text = "#           time             counts unit events
     0.100892621               0.77 msec task-clock                       #    0.007 CPUs utilized          
     0.100892621                  1      faults                 #    1.482 K/sec                  
     0.254609381               0.05 msec task-clock                       #    0.001 CPUs utilized          
     0.254609381      <not counted>      faults                                            
";
    let json = r#"{"interval" : 0.100892621, "counter-value" : "0.770000", "unit" : "msec", "event" : "task-clock", "pcnt-running" : 100.00}
{"interval" : 0.100892621, "counter-value" : "1.000000", "unit" : "", "event" : "faults", "pcnt-running" : 100.00}
{"interval" : 0.254609381, "counter-value" : "0.050000", "unit" : "msec", "event" : "task-clock", "pcnt-running" : 100.00}
{"interval" : 0.254609381, "counter-value" : "<not counted>", "unit" : "", "event" : "faults", "event-runtime" : 0, "pcnt-running" : 100.00}"#;
    for form in [fields, text, json] {
        let stat = PerfStat::parse(form).expect("counts");
        assert_eq!(stat.elapsed_seconds, Some(0.254609381), "{form}");
        let clock = value(&stat, "task-clock").expect("counted");
        assert!((clock - 0.82e-3).abs() < 1e-12, "{clock}");
        // Not all of it was counted: the sum of the rest would be too little.
        assert_eq!(value(&stat, "faults"), None);
    }
}

#[test]
fn numbers_are_read_as_the_language_has_them() {
    for (text, is) in [
        ("8,000.52", 8000.52),
        ("8.000,52", 8000.52),
        ("1,234,567", 1_234_567.0),
        ("1.234.567", 1_234_567.0),
        ("1\u{202f}234\u{202f}567", 1_234_567.0),
        ("12,345", 12345.0),
        ("0.004", 0.004),
        ("0,94", 0.94),
        ("7", 7.0),
    ] {
        assert_eq!(number(text, false), Some(is), "{text}");
    }
    assert_eq!(number("1e5", true), None);
    // A count has no parts: in German its thousands have a point.
    assert_eq!(number("1.234", true), Some(1234.0));
    assert_eq!(number("1.234", false), Some(1.234));
    assert_eq!(number("0.234", true), Some(0.234));
    let stat = PerfStat::parse("             1.234      context-switches\n").expect("counts");
    assert_eq!(value(&stat, "context-switches"), Some(1234.0));
}

#[test]
fn counts_of_parts_and_other_texts_are_refused() {
    let by_cpu = "CPU0,102.07,msec,task-clock,102065290,100.00,1.000,CPUs utilized\n";
    assert_eq!(PerfStat::parse(by_cpu), Err(PerfStatError::ByPart { line: 1 }));
    let by_core = "S0-D0-C0,2,102.07,msec,task-clock,102065290,100.00,1.000,CPUs utilized\n";
    assert_eq!(PerfStat::parse(by_core), Err(PerfStatError::ByPart { line: 1 }));
    for none in [
        "",
        "Lorem ipsum dolor sit amet\n",
        "main;a;b 30\n",
        "{\"a\": 1}\n",
        "7.9 seconds user\n",
    ] {
        assert_eq!(PerfStat::parse(none), Err(PerfStatError::NoCounts), "{none:?}");
    }
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_without_panic(text in "[ -~\u{a0}\u{202f}\n\t]{0,200}") {
        if let Ok(stat) = PerfStat::parse(&text) {
            for counted in stat.counts.values() {
                proptest::prop_assert!((0.0..=1.0).contains(&counted.running_share));
            }
        }
    }
}
