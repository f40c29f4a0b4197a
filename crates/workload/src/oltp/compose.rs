//! Making the packets of a transaction.

use super::statement::StatementKind as Kind;
use super::workload::{OltpWorkload, OltpWorkloadKind};
use crate::program::{Composer, Step};
use scaleprof_wire::{ExecuteTemplate, Parameter};
use std::io::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};

/// The values of one statement: numbers in the order of the parameters, and the strings made when they are written.
struct Values<'a> {
    ints: &'a [i32],
    /// Groups of digits of the strings, in their order.
    strings: &'a [usize],
}

/// Groups of digits of column `c`.
const C_GROUPS: usize = 10;
/// Groups of digits of column `pad`.
const PAD_GROUPS: usize = 5;

/// Ids that no connection has used, for oltp_insert without AUTO_INCREMENT (sysbench's `rand.unique`). Multiplying
/// by an odd number gives every 32-bit number once, in scattered order.
static NEXT_UNIQUE: AtomicU32 = AtomicU32::new(0);

fn unique_id() -> i32 {
    let n = NEXT_UNIQUE.fetch_add(1, Ordering::Relaxed);
    (n.wrapping_mul(0x9e37_79b1) ^ 0x8000_0000) as i32
}

impl OltpWorkload {
    /// Makes the packets of the next transaction.
    pub(crate) fn compose(&self, composer: &mut Composer, out: &mut Vec<u8>, steps: &mut Vec<Step>) {
        for &(kind, count) in &self.groups {
            match kind {
                Kind::Begin | Kind::Commit => self.push(kind, 0, &NOTHING, composer, out, steps),
                Kind::RandomPoints | Kind::RandomRanges => {
                    self.push_random_select(kind, composer, out, steps);
                }
                _ => {
                    // sysbench draws the table once for all statements of a group.
                    let table = composer.rng.uniform(1, self.options.tables) - 1;
                    for _ in 0..count {
                        self.push_on_table(kind, table, composer, out, steps);
                    }
                }
            }
        }
    }

    fn push_on_table(&self, kind: Kind, table: u32, composer: &mut Composer, out: &mut Vec<u8>, steps: &mut Vec<Step>) {
        let mut id = || {
            let rows = self.options.table_size;
            self.options.distribution.draw(&mut composer.rng, 1, rows) as i32
        };
        match kind {
            Kind::PointSelects | Kind::IndexUpdates => {
                let ints = &[id()];
                self.push(kind, table, &Values { ints, strings: &[] }, composer, out, steps);
            }
            Kind::SimpleRanges | Kind::SumRanges | Kind::OrderRanges | Kind::DistinctRanges => {
                let first = id();
                // Past the last row where it falls so, as in sysbench.
                let ints = &[first, first.saturating_add(self.options.range_size as i32 - 1)];
                self.push(kind, table, &Values { ints, strings: &[] }, composer, out, steps);
            }
            Kind::NonIndexUpdates => {
                let ints = &[id()];
                let strings = &[C_GROUPS];
                self.push(kind, table, &Values { ints, strings }, composer, out, steps);
            }
            Kind::Deletes if self.kind == OltpWorkloadKind::Delete => {
                let ints = &[id()];
                self.push(kind, table, &Values { ints, strings: &[] }, composer, out, steps);
            }
            Kind::Deletes => {
                let (id, k) = (id(), id());
                let gone = Values {
                    ints: &[id],
                    strings: &[],
                };
                self.push(Kind::Deletes, table, &gone, composer, out, steps);
                let strings = &[C_GROUPS, PAD_GROUPS];
                let back = Values {
                    ints: &[id, k],
                    strings,
                };
                self.push(Kind::Inserts, table, &back, composer, out, steps);
            }
            Kind::Inserts => {
                let k = id();
                let id = if self.options.auto_inc { 0 } else { unique_id() };
                let strings = &[C_GROUPS, PAD_GROUPS];
                let values = Values {
                    ints: &[id, k],
                    strings,
                };
                self.push(kind, table, &values, composer, out, steps);
            }
            Kind::Begin | Kind::Commit | Kind::RandomPoints | Kind::RandomRanges => {}
        }
    }

    /// The random selects stay in the connection's own slice of the table, as sysbench's threads do.
    fn push_random_select(&self, kind: Kind, composer: &mut Composer, out: &mut Vec<u8>, steps: &mut Vec<Step>) {
        let rows = u64::from(self.options.table_size);
        let slice = |position: u32| (rows * u64::from(position) / u64::from(composer.of.max(1))) as u32;
        let (low, high) = (slice(composer.position), slice(composer.position + 1));
        let mut draw = || self.options.distribution.draw(&mut composer.rng, low, high) as i32;
        let mut ints = Vec::with_capacity(2 * self.options.number_of_ranges as usize);
        if kind == Kind::RandomPoints {
            ints.extend((0..self.options.random_points).map(|_| draw()));
        } else {
            for _ in 0..self.options.number_of_ranges {
                let first = draw();
                ints.extend([first, first.saturating_add(self.options.delta as i32)]);
            }
        }
        self.push(
            kind,
            0,
            &Values {
                ints: &ints,
                strings: &[],
            },
            composer,
            out,
            steps,
        );
    }

    #[inline]
    fn push(
        &self,
        kind: Kind,
        table: u32,
        values: &Values<'_>,
        composer: &mut Composer,
        out: &mut Vec<u8>,
        steps: &mut Vec<Step>,
    ) {
        let Some(statement) = &self.statements[kind as usize] else {
            return;
        };
        let place = statement.first + table as usize;
        let id = composer.statement_ids.get(place).copied().unwrap_or(0);
        if id == 0 {
            push_text(self.sql(place), statement.template.parameters(), values, composer, out);
        } else {
            let with_types = !std::mem::replace(&mut composer.types_sent[place], true);
            push_execute(&statement.template, id, with_types, values, composer, out);
        }
        steps.push(Step {
            end: out.len() as u32,
            kind: kind as u16,
        });
    }
}

const NOTHING: Values<'static> = Values {
    ints: &[],
    strings: &[],
};

#[inline]
fn push_execute(
    template: &ExecuteTemplate,
    id: u32,
    with_types: bool,
    values: &Values<'_>,
    composer: &mut Composer,
    out: &mut Vec<u8>,
) {
    let start = template.begin(id, with_types, out);
    let (mut ints, mut strings) = (values.ints.iter(), values.strings.iter());
    for parameter in template.parameters() {
        match parameter {
            Parameter::Int => {
                ExecuteTemplate::push_int(ints.next().copied().unwrap_or(0), out);
            }
            Parameter::ShortString | Parameter::Decimal => {
                let groups = strings.next().copied().unwrap_or(0);
                out.push((groups * 12 - 1) as u8);
                composer.rng.push_digit_groups(groups, out);
            }
        }
    }
    ExecuteTemplate::finish(start, out);
}

/// The statement as text, with its values in the places of the question marks. The values are numbers and strings
/// of digits: there is nothing to escape.
fn push_text(sql: &str, parameters: &[Parameter], values: &Values<'_>, composer: &mut Composer, out: &mut Vec<u8>) {
    const COM_QUERY: u8 = 3;
    let start = out.len();
    out.extend_from_slice(&[0, 0, 0, 0, COM_QUERY]);
    let (mut ints, mut strings) = (values.ints.iter(), values.strings.iter());
    let mut pieces = sql.split('?');
    out.extend_from_slice(pieces.next().unwrap_or_default().as_bytes());
    for (piece, parameter) in pieces.zip(parameters) {
        match parameter {
            Parameter::Int => {
                // Writing to a Vec cannot fail.
                let _ = write!(out, "{}", ints.next().copied().unwrap_or(0));
            }
            Parameter::ShortString | Parameter::Decimal => {
                out.push(b'\'');
                composer
                    .rng
                    .push_digit_groups(strings.next().copied().unwrap_or(0), out);
                out.push(b'\'');
            }
        }
        out.extend_from_slice(piece.as_bytes());
    }
    ExecuteTemplate::finish(start, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oltp::{OltpOptions, Protocol};
    use crate::random::ConnectionRng;
    use std::collections::BTreeMap;

    fn compose(kind: OltpWorkloadKind, options: OltpOptions) -> (Vec<u8>, Vec<Step>) {
        let workload = OltpWorkload::new(kind, options).unwrap();
        let prepared = workload.prepared_sql().len();
        let mut composer = Composer {
            rng: ConnectionRng::new(1, 0),
            position: 0,
            of: 4,
            statement_ids: (1..=prepared as u32).collect(),
            types_sent: vec![false; prepared].into(),
        };
        let (mut out, mut steps) = (Vec::new(), Vec::new());
        workload.compose(&mut composer, &mut out, &mut steps);
        (out, steps)
    }

    fn counts(kind: OltpWorkloadKind) -> BTreeMap<&'static str, usize> {
        let (_, steps) = compose(kind, OltpOptions::default());
        let mut counts = BTreeMap::new();
        for step in steps {
            *counts.entry(Kind::ALL[usize::from(step.kind)].name()).or_default() += 1;
        }
        counts
    }

    #[test]
    fn a_transaction_has_as_many_statements_as_sysbench_s() {
        let total = |kind| counts(kind).values().sum::<usize>();
        assert_eq!(total(OltpWorkloadKind::ReadWrite), 20);
        assert_eq!(total(OltpWorkloadKind::ReadOnly), 16);
        assert_eq!(total(OltpWorkloadKind::WriteOnly), 6);
        for kind in OltpWorkloadKind::ALL.into_iter().skip(3) {
            assert_eq!(total(kind), 1, "{kind}");
        }
        assert_eq!(counts(OltpWorkloadKind::ReadWrite)["point_selects"], 10);
    }

    #[test]
    fn packets_follow_one_another_and_their_lengths_are_right() {
        for protocol in [Protocol::Binary, Protocol::Text] {
            for kind in OltpWorkloadKind::ALL {
                let options = OltpOptions {
                    protocol,
                    ..OltpOptions::default()
                };
                let (out, steps) = compose(kind, options);
                let mut at = 0;
                for step in &steps {
                    let length = u32::from_le_bytes([out[at], out[at + 1], out[at + 2], 0]);
                    at += 4 + length as usize;
                    assert_eq!(at, step.end as usize, "{kind} {protocol}");
                }
                assert_eq!(at, out.len());
            }
        }
    }

    #[test]
    fn text_statements_have_their_values_in_place() {
        let options = OltpOptions {
            protocol: Protocol::Text,
            table_size: 1,
            ..OltpOptions::default()
        };
        let (out, _) = compose(OltpWorkloadKind::ReadOnly, options);
        let text = String::from_utf8_lossy(&out);
        assert!(text.contains("SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN 1 AND 100"));
        assert!(!text.contains('?'));
    }

    #[test]
    fn unique_ids_do_not_repeat() {
        let mut seen = std::collections::HashSet::new();
        assert!((0..100_000).all(|_| seen.insert(unique_id())));
    }
}
