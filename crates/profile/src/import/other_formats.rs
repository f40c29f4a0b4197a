//! What other tools write that is not read here: by name, with the command that gives what can be
//! read.

/// A form that is known and not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OtherFormat {
    OldPerfData,
    Compressed(Packer),
    Utf16,
    Gperftools,
    FlightRecorder,
    FirefoxProfile,
    Speedscope,
    PerfReport,
    Opreport,
    PtPmp,
    Gdb,
    Bpftrace,
    Bcc,
    Dtrace,
}

/// What packs files, but for gzip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packer {
    Xz,
    Bzip2,
    Zip,
    Zstd,
    Lz4,
}

/// What to say of a file that begins so; none where it is not one of these.
pub(super) fn refusal(bytes: &[u8]) -> Option<&'static str> {
    Some(binary(bytes).or_else(|| text(bytes))?.words())
}

impl OtherFormat {
    fn words(self) -> &'static str {
        match self {
            OtherFormat::OldPerfData => {
                "perf.data version 1, before Linux 2.6.36: import the output of `perf script` of that perf"
            }
            OtherFormat::Compressed(Packer::Xz) => "compressed with xz: `xz -dc FILE | scaleprof import -`",
            OtherFormat::Compressed(Packer::Bzip2) => "compressed with bzip2: `bzip2 -dc FILE | scaleprof import -`",
            OtherFormat::Compressed(Packer::Zip) => "a zip archive: `unzip -p FILE NAME | scaleprof import -`",
            OtherFormat::Compressed(Packer::Zstd) => "compressed with zstd: `zstd -dc FILE | scaleprof import -`",
            OtherFormat::Compressed(Packer::Lz4) => "compressed with lz4: `lz4 -dc FILE | scaleprof import -`",
            OtherFormat::Utf16 => {
                "UTF-16 text, as written by > of PowerShell: `iconv -f UTF-16 -t UTF-8 FILE | scaleprof import -`"
            }
            OtherFormat::Gperftools => {
                "a CPU profile of gperftools, without symbols: import the output of `pprof -proto BINARY FILE > \
                 profile.pb.gz` (github.com/google/pprof)"
            }
            OtherFormat::FlightRecorder => {
                "a Java flight recording: import the output of `jfrconv --collapsed FILE stacks.folded` \
                 (async-profiler)"
            }
            OtherFormat::FirefoxProfile => {
                "it is a profile of the Firefox Profiler, which is written here and not read: import the recording that it was made from"
            }
            OtherFormat::Speedscope => {
                "it is a profile of speedscope, which is written here and not read: import the recording that it was made from"
            }
            OtherFormat::PerfReport => {
                "a table of perf report, without stacks: import the perf.data, or the output of `perf script -i \
                 perf.data`"
            }
            OtherFormat::Opreport => {
                "a table of opreport, without call paths: record with `perf record --call-graph dwarf -p PID`, and \
                 import perf.data"
            }
            OtherFormat::PtPmp => {
                "a list of pt-pmp: `stackcollapse-pmp.pl FILE | scaleprof import -` \
                 (github.com/brendangregg/FlameGraph). Its counts are threads, most of them waiting, not CPU time"
            }
            OtherFormat::Gdb => {
                "a backtrace of gdb: `stackcollapse-gdb.pl FILE | scaleprof import -` \
                 (github.com/brendangregg/FlameGraph). Its stacks are threads, most of them waiting, not CPU time"
            }
            OtherFormat::Bpftrace => {
                "a map of bpftrace: `stackcollapse-bpftrace.pl FILE | scaleprof import -` \
                 (github.com/brendangregg/FlameGraph)"
            }
            OtherFormat::Bcc => {
                "it is a text of bcc's tools: run the same tool with -f (folded stacks), and import what it prints"
            }
            OtherFormat::Dtrace => {
                "an aggregation of DTrace: `stackcollapse.pl FILE | scaleprof import -` \
                 (github.com/brendangregg/FlameGraph)"
            }
        }
    }
}

/// By the first bytes (magic numbers of file(1)).
fn binary(bytes: &[u8]) -> Option<OtherFormat> {
    const BEGINNINGS: [(&[u8], OtherFormat); 9] = [
        (b"PERFFILE", OtherFormat::OldPerfData),
        (b"\xfd7zXZ\0", OtherFormat::Compressed(Packer::Xz)),
        (b"BZh", OtherFormat::Compressed(Packer::Bzip2)),
        (b"PK\x03\x04", OtherFormat::Compressed(Packer::Zip)),
        (b"\x28\xb5\x2f\xfd", OtherFormat::Compressed(Packer::Zstd)),
        (b"\x04\x22\x4d\x18", OtherFormat::Compressed(Packer::Lz4)),
        (b"\xff\xfe", OtherFormat::Utf16),
        (b"\xfe\xff", OtherFormat::Utf16),
        (b"FLR\0", OtherFormat::FlightRecorder),
    ];
    let begins = BEGINNINGS.iter().find(|(beginning, _)| bytes.starts_with(beginning));
    if let Some((_, format)) = begins {
        return Some(*format);
    }
    // Words of the processor: 0, the number of words that follow, version 0, the period, 0
    // (gperftools, docs/cpuprofile-fileformat).
    let word = |place: usize| {
        Some(u64::from_le_bytes(
            bytes.get(8 * place..8 * place + 8)?.try_into().ok()?,
        ))
    };
    if (word(0), word(1), word(2), word(4)) == (Some(0), Some(3), Some(0), Some(0)) {
        return Some(OtherFormat::Gperftools);
    }
    // Without a byte order mark: plain characters, each beside a zero.
    let pairs = bytes.get(..64.min(bytes.len() / 2 * 2)).unwrap_or_default();
    let mut pairs = pairs.chunks_exact(2);
    let is_utf16 = pairs.len() >= 4 && pairs.all(|pair| matches!(pair, [b'\t'..=b'~', 0] | [0, b'\t'..=b'~']));
    is_utf16.then_some(OtherFormat::Utf16)
}

/// How much of a text is looked at.
const BEGINNING: usize = 8192;

fn text(bytes: &[u8]) -> Option<OtherFormat> {
    let beginning = String::from_utf8_lossy(bytes.get(..BEGINNING).unwrap_or(bytes));
    if beginning.trim_start().starts_with('{') {
        return match &beginning {
            json if json.contains("speedscope.app/file-format-schema") => Some(OtherFormat::Speedscope),
            json if json.contains("\"meta\"") && json.contains("\"preprocessedProfileVersion\"") => {
                Some(OtherFormat::FirefoxProfile)
            }
            _ => None,
        };
    }
    let lines = || beginning.lines().map(str::trim_end).filter(|line| !line.is_empty());
    let any = |is: &dyn Fn(&str) -> bool| lines().any(is);
    let most = |is: &dyn Fn(&str) -> bool| 2 * lines().filter(|line| is(line)).count() >= lines().count().max(1);
    if any(&is_of_perf_report) {
        return Some(OtherFormat::PerfReport);
    }
    if any(&|line| line.starts_with("samples  %")) {
        return Some(OtherFormat::Opreport);
    }
    if any(&|line| line.starts_with("#0 ")) && any(&|line| line.starts_with("Thread ")) {
        return Some(OtherFormat::Gdb);
    }
    if any(&|line| line.starts_with("@") && line.ends_with('[')) && any(&|line| counts_of_map(line)) {
        return Some(OtherFormat::Bpftrace);
    }
    let of_bcc = ["Sampling at ", "Tracing off-CPU time", "Tracing blocked time"];
    if any(&|line| of_bcc.iter().any(|words| line.starts_with(words))) || any(&is_task_of_bcc) {
        return Some(OtherFormat::Bcc);
    }
    if most(&is_of_dtrace) {
        return Some(OtherFormat::Dtrace);
    }
    most(&is_of_pt_pmp).then_some(OtherFormat::PtPmp)
}

/// `# Overhead  Command ...`, or a line of the table without its head: ` 66.26%  mysqld  mysqld
/// [.] f`.
fn is_of_perf_report(line: &str) -> bool {
    let head = line.strip_prefix('#').map(str::trim_start);
    if head
        .is_some_and(|head| (head.starts_with("Overhead") || head.starts_with("Children")) && head.contains("Symbol"))
    {
        return true;
    }
    let plain = line.trim_start_matches([' ', '-', '+']);
    let share = plain.split_whitespace().next().and_then(|word| word.strip_suffix('%'));
    share.is_some_and(|share| share.parse::<f64>().is_ok()) && ["[.] ", "[k] "].iter().any(|mark| line.contains(mark))
}

/// `, connection]: 172` or `]: 5`.
fn counts_of_map(line: &str) -> bool {
    let count = line.rsplit_once("]: ").map(|(_, count)| count);
    count.is_some_and(|count| !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit()))
}

/// `    -                mysqld (26966)`.
fn is_task_of_bcc(line: &str) -> bool {
    let task = line.strip_prefix("    -    ").map(str::trim_start);
    let number = task.and_then(|task| task.rsplit_once(" (")?.1.strip_suffix(')'));
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}

/// "              unix`swtch+0x150", or the count below.
fn is_of_dtrace(line: &str) -> bool {
    let word = line.trim_start();
    let is_indented = line.len() > word.len() + 7;
    is_indented && (word.contains('`') || word.bytes().all(|byte| byte.is_ascii_digit()))
}

/// `     31 pthread_cond_wait,os_event_wait_low(os0sync.cc:214),...`, innermost first.
fn is_of_pt_pmp(line: &str) -> bool {
    let parts = line.trim_start().split_once(' ');
    parts.is_some_and(|(count, path)| {
        let functions = path.split(',').count();
        !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit()) && functions > 1 && !path.contains(';')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_files_and_other_encodings_are_told_with_the_command_that_unpacks_them() {
        let said = |bytes: &[u8]| refusal(bytes).unwrap_or("nothing");
        for (bytes, words) in [
            (&b"PERFFILE\x68\0"[..], "version 1"),
            (b"\xfd7zXZ\0\0\x04", "xz -dc"),
            (b"BZh91AY&SY", "bzip2 -dc"),
            (b"PK\x03\x04\x14", "unzip -p"),
            (b"\x28\xb5\x2f\xfd\x24", "zstd -dc"),
            (b"\xff\xfem\0a\0i\0n\0", "iconv"),
            (b"m\0a\0i\0n\0;\0f\0 \x001\0", "iconv"),
            (b"\0m\0a\0i\0n\0;\0f\0 \x001", "iconv"),
            (
                b"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\"}",
                "speedscope",
            ),
        ] {
            assert!(said(bytes).contains(words), "{bytes:?}: {}", said(bytes));
        }
        let words: Vec<u8> = [0u64, 3, 0, 10_000, 0, 1, 2]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        assert!(said(&words).contains("gperftools"));
    }

    #[test]
    fn what_is_read_is_none_of_these() {
        for text in [
            "main;work;here 30\nmain;work;there 20\n",
            "mysqld 7/8 [000] 1.5: 1 cycles: \n\t 55 main (/x)\n",
            "# comment\nmain;f(a, b) 12\nmain;g 1.5\n",
            "a,b 3\nc,d 4\n",
        ] {
            assert_eq!(refusal(text.as_bytes()), None, "{text}");
        }
    }
}
