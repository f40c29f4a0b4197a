//! Waiting loops as a compiler makes them.

use std::path::Path;
use std::process::Command;

use scaleprof_binary::spin::{SpinFault, SpinKind, SpinLoops};
use scaleprof_binary::symbols::{SymbolFile, SymbolSearch};

const SOURCE: &str = r#"
#if defined(__x86_64__)
#define RELAX() __asm__ volatile("pause" ::: "memory")
#define BARRIER() __asm__ volatile("lock; orq $0,(%%rsp)" ::: "memory", "cc")
#else
#define RELAX() __asm__ volatile("isb" ::: "memory")
#define BARRIER() __sync_synchronize()
#endif
volatile int flag;
volatile int *other;
__attribute__((noinline)) unsigned long delay(unsigned long rounds)
{
	unsigned long sum = 0;
	for (unsigned long i = 0; i < rounds * 50; i++) { sum += i; RELAX(); }
	return sum;
}
void spins_with_a_helper(volatile int *word, unsigned rounds)
{
	while (rounds-- && *word) delay(6);
}
void polls(void) { while (flag) RELAX(); }
void only_looks(void) { while (flag); }
struct lock { int state; struct lock *volatile owner; };
void looks_through_a_pointer(struct lock *lock) { while (__atomic_load_n(&lock->owner->state, __ATOMIC_ACQUIRE)); }
unsigned long length(const char *text) { const char *end = text; while (*end) end++; return end - text; }
struct lock *last(struct lock *lock) { while (lock->owner) lock = lock->owner; return lock; }
int add_one(int *to) { int old = *to; while (!__atomic_compare_exchange_n(to, &old, old + 1, 1, 0, 0)); return old; }
void polls_with_a_barrier(void) { while (flag) { RELAX(); BARRIER(); } }
void counts_down_and_looks(volatile int *word)
{
	do { for (int i = 0; i < 100; i++) RELAX(); } while (*word);
}
struct entry { struct entry *next; long value; };
struct queue { struct entry *first; long entries; };
void takes_from_a_queue(struct queue *queue, void (*done)(long))
{
	while (queue->entries) {
		struct entry *entry = queue->first;
		if (!entry) continue;
		queue->first = entry->next;
		queue->entries--;
		done(entry->value);
	}
}
void works_when_asked(volatile int *asked, void (*work)(void)) { for (;;) { while (!*asked); work(); } }
unsigned long adds(const unsigned long *from, int count)
{
	unsigned long sum = 0;
	while (count--) sum += *from++;
	return sum;
}
"#;

/// Functions with waiting loops in them, and what these are.
fn found(source_text: &str, optimisation: &str, folder: &Path) -> Vec<(String, SpinKind, Vec<SpinFault>)> {
    let (source, library) = (folder.join("spin.c"), folder.join("spin.so"));
    std::fs::write(&source, source_text).expect("written");
    let status = Command::new("cc")
        .args([optimisation, "-fPIC", "-shared", "-fvisibility=hidden", "-o"])
        .args([&library, &source])
        .status();
    assert!(status.expect("cc runs").success());
    let bytes = std::fs::read(&library).expect("readable");
    let symbols = SymbolFile::open(&library, &SymbolSearch::nowhere()).expect("ELF");
    let loops = SpinLoops::with_likely("spin.so", &bytes, symbols.function_ranges()).expect("ELF");
    let mut found: Vec<_> = loops
        .loops()
        .iter()
        .map(|found| {
            let function = symbols.function(found.start()).expect("named").name;
            (function, found.kind, found.faults.clone())
        })
        .collect();
    found.sort();
    found
}

#[test]
fn finds_the_loops_that_a_compiler_makes_at_every_level() {
    for optimisation in ["-O1", "-O2", "-O3"] {
        let folder = tempfile::tempdir().expect("a folder");
        let found = found(SOURCE, optimisation, folder.path());
        let is_there =
            |function: &str, kind: SpinKind| found.iter().any(|(name, is, _)| name == function && *is == kind);
        assert!(is_there("delay", SpinKind::Delay), "{optimisation}: {found:?}");
        assert!(
            is_there("spins_with_a_helper", SpinKind::Retry),
            "{optimisation}: {found:?}"
        );
        assert!(is_there("polls", SpinKind::Poll), "{optimisation}: {found:?}");
        assert!(
            is_there("counts_down_and_looks", SpinKind::Delay),
            "{optimisation}: {found:?}"
        );
        assert!(
            is_there("counts_down_and_looks", SpinKind::Poll),
            "{optimisation}: {found:?}"
        );
        for busy in ["adds", "length", "last", "add_one", "takes_from_a_queue"] {
            assert!(
                !found.iter().any(|(name, ..)| name == busy),
                "{optimisation}: {found:?}"
            );
        }
        for silent in ["only_looks", "looks_through_a_pointer", "works_when_asked"] {
            let is_told = found.iter().any(|(name, kind, faults)| {
                name == silent && *kind == SpinKind::Poll && *faults == [SpinFault::NoRelax]
            });
            assert!(is_told, "{optimisation}: {silent} in {found:?}");
        }
        let faults: Vec<_> = found
            .iter()
            .filter(|(.., faults)| !faults.is_empty() && *faults != [SpinFault::NoRelax])
            .collect();
        // A full barrier as a locked instruction on the stack, which some compilers make of one; on AArch64 it is an instruction of its own.
        let names: Vec<&str> = faults.iter().map(|(name, ..)| name.as_str()).collect();
        let expected: &[&str] = if cfg!(target_arch = "x86_64") {
            &["polls_with_a_barrier"]
        } else {
            &[]
        };
        assert_eq!(names, expected, "{optimisation}: {faults:?}");
    }
}

/// `ut_delay` of MySQL where `UT_RELAX_CPU` is empty, as on a CPU that its authors did not know, those that call it, and code that
/// counts for another purpose.
const DELAYS: &str = r#"
int never;
__attribute__((noinline)) unsigned long delay(unsigned long rounds)
{
	unsigned long sum = 0;
	for (unsigned long i = 0; i < rounds * 50; i++) sum += i;
	if (never) never = sum;
	return sum;
}
void spins(volatile int *word, unsigned rounds) { while (rounds-- && *word) delay(6); }
void backs_off(volatile int *word, int turns) { while (*word) for (int i = 0; i < turns; i++); }
__attribute__((noinline)) unsigned long years(unsigned long days) { unsigned long n = 0; while (days >= 366) { days -= 366; n++; } return n; }
unsigned long all_years(unsigned long to) { unsigned long sum = 0; for (unsigned long i = 0; i < to; i++) sum ^= years(i); return sum; }
"#;

/// MY_RELAX_CPU() of MariaDB on aarch64: no instruction, but the compiler must not leave the loop out. A remainder counts one register too.
const BARRIER_ALONE: &str = r#"
void passes_time(unsigned turns) { while (turns--) __asm__ volatile("" ::: "memory"); }
void tries(int (*try)(void)) { for (int i = 0; i < 100; i++) { if (!try()) return; for (unsigned j = 200; j--;) __asm__ volatile("" ::: "memory"); } }
unsigned remainder_of(unsigned of) { while (of >= 10) { of -= 10; __asm__ volatile("" ::: "memory"); } return of; }
"#;

#[test]
fn a_loop_of_which_nothing_comes_but_time_is_a_delay_whoever_looks_around_it() {
    let folder = tempfile::tempdir().expect("a folder");
    for optimisation in ["-O1", "-O2", "-Os"] {
        let found = found(BARRIER_ALONE, optimisation, folder.path());
        let expected =
            ["passes_time", "tries"].map(|name| (name.to_owned(), SpinKind::Delay, vec![SpinFault::NoRelax]));
        assert_eq!(found, expected, "{optimisation}");
    }
}

/// The compiler itself proves the point: what it keeps of `backs_off` at -O1, it leaves out at -O2.
#[test]
fn tells_of_delays_that_a_compiler_may_leave_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let told = |optimisation: &str| found(DELAYS, optimisation, folder.path());
    let told_of = |function: &str, kind: SpinKind, faults: &[SpinFault]| (function.to_owned(), kind, faults.to_vec());
    let may_go = [SpinFault::NoRelax, SpinFault::OnlyCounts];
    let delay = told_of("delay", SpinKind::Delay, &may_go);
    let spins = told_of("spins", SpinKind::Retry, &[SpinFault::NoRelax]);
    let backs_off = told_of("backs_off", SpinKind::Delay, &may_go);
    assert_eq!(told("-O1"), [backs_off, delay.clone(), spins.clone()]);
    let silent_poll = told_of("backs_off", SpinKind::Poll, &[SpinFault::NoRelax]);
    assert_eq!(told("-O2"), [silent_poll, delay, spins]);
}
