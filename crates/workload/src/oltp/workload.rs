//! Which statements each workload has, and in what order.

use super::options::{OltpOptions, OptionsError};
use super::statement::StatementKind;
use scaleprof_vocabulary::WorkloadName;
use scaleprof_wire::ExecuteTemplate;
use std::fmt;
use std::str::FromStr;

/// The workloads, with sysbench's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum OltpWorkloadKind {
    ReadWrite,
    ReadOnly,
    WriteOnly,
    PointSelect,
    UpdateIndex,
    UpdateNonIndex,
    Insert,
    Delete,
    RandomPoints,
    RandomRanges,
}

use OltpWorkloadKind::*;
use StatementKind as Kind;

impl OltpWorkloadKind {
    /// All of them.
    pub const ALL: [OltpWorkloadKind; 10] = [
        ReadWrite,
        ReadOnly,
        WriteOnly,
        PointSelect,
        UpdateIndex,
        UpdateNonIndex,
        Insert,
        Delete,
        RandomPoints,
        RandomRanges,
    ];

    /// The word for it in a bundle.
    pub fn word(self) -> WorkloadName {
        match self {
            ReadWrite => WorkloadName::OltpReadWrite,
            ReadOnly => WorkloadName::OltpReadOnly,
            WriteOnly => WorkloadName::OltpWriteOnly,
            PointSelect => WorkloadName::OltpPointSelect,
            UpdateIndex => WorkloadName::OltpUpdateIndex,
            UpdateNonIndex => WorkloadName::OltpUpdateNonIndex,
            Insert => WorkloadName::OltpInsert,
            Delete => WorkloadName::OltpDelete,
            RandomPoints => WorkloadName::SelectRandomPoints,
            RandomRanges => WorkloadName::SelectRandomRanges,
        }
    }

    /// sysbench's name for it.
    pub fn name(self) -> &'static str {
        self.word().name()
    }

    /// Whether it changes the tables, so that what one rung did is there in the next.
    pub fn writes(self) -> bool {
        !matches!(self, ReadOnly | PointSelect | RandomPoints | RandomRanges)
    }

    /// The statements of a transaction in their order, each with how often it comes. A group draws its table once.
    fn groups(self, o: &OltpOptions) -> Vec<(Kind, u32)> {
        let ranges = [
            (Kind::SimpleRanges, o.simple_ranges),
            (Kind::SumRanges, o.sum_ranges),
            (Kind::OrderRanges, o.order_ranges),
            (Kind::DistinctRanges, o.distinct_ranges),
        ];
        let reads = || {
            let mut groups = vec![(Kind::PointSelects, o.point_selects)];
            if o.range_selects {
                groups.extend(ranges);
            }
            groups
        };
        let writes = [
            (Kind::IndexUpdates, o.index_updates),
            (Kind::NonIndexUpdates, o.non_index_updates),
            (Kind::Deletes, o.delete_inserts),
        ];
        let in_transaction = |groups: Vec<(Kind, u32)>| {
            if o.skip_trx {
                return groups;
            }
            let mut all = vec![(Kind::Begin, 1)];
            all.extend(groups);
            all.push((Kind::Commit, 1));
            all
        };
        match self {
            ReadWrite => in_transaction([reads(), writes.to_vec()].concat()),
            ReadOnly => in_transaction(reads()),
            WriteOnly => in_transaction(writes.to_vec()),
            PointSelect => vec![(Kind::PointSelects, 1)],
            UpdateIndex => vec![(Kind::IndexUpdates, o.index_updates)],
            UpdateNonIndex => vec![(Kind::NonIndexUpdates, o.non_index_updates)],
            Insert => vec![(Kind::Inserts, 1)],
            Delete => vec![(Kind::Deletes, 1)],
            RandomPoints => vec![(Kind::RandomPoints, 1)],
            RandomRanges => vec![(Kind::RandomRanges, 1)],
        }
    }
}

impl fmt::Display for OltpWorkloadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for OltpWorkloadKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        OltpWorkloadKind::ALL
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| {
                let names = OltpWorkloadKind::ALL.map(OltpWorkloadKind::name).join(", ");
                format!("there is no workload '{text}': use {names}, tpcc, or the path of a .sql file")
            })
    }
}

/// A workload with its options, ready to make packets.
#[derive(Debug)]
pub struct OltpWorkload {
    pub(super) kind: OltpWorkloadKind,
    pub(super) options: OltpOptions,
    pub(super) groups: Vec<(Kind, u32)>,
    /// For each kind, its template, and the place of its first table among the prepared statements.
    pub(super) statements: [Option<PreparedKind>; Kind::ALL.len()],
    prepared_sql: Vec<String>,
    statement_names: Vec<String>,
}

/// What is the same for all connections about one kind of statement.
#[derive(Debug)]
pub(super) struct PreparedKind {
    pub(super) template: ExecuteTemplate,
    pub(super) first: usize,
}

impl OltpWorkload {
    /// Puts a workload together.
    ///
    /// # Errors
    /// The options contradict each other or the workload.
    pub fn new(kind: OltpWorkloadKind, options: OltpOptions) -> Result<Self, OptionsError> {
        options.validate()?;
        if matches!(kind, RandomPoints | RandomRanges) && options.tables != 1 {
            return Err(OptionsError::OneTableOnly(kind.name()));
        }
        let mut groups = kind.groups(&options);
        groups.retain(|&(_, count)| count > 0);
        if groups.iter().all(|(k, _)| matches!(k, Kind::Begin | Kind::Commit)) {
            return Err(OptionsError::Empty);
        }

        let mut statements = [const { None }; Kind::ALL.len()];
        let mut prepared_sql = Vec::new();
        let pairs_inserts = !matches!(kind, Delete);
        for &(statement, _) in &groups {
            let followed_by_insert = (statement == Kind::Deletes && pairs_inserts).then_some(Kind::Inserts);
            for statement in std::iter::once(statement).chain(followed_by_insert) {
                let terms = match statement {
                    Kind::RandomPoints => options.random_points,
                    _ => options.number_of_ranges,
                };
                let tables = if statement.is_per_table() { options.tables } else { 1 };
                statements[statement as usize] = Some(PreparedKind {
                    template: ExecuteTemplate::new(&statement.parameters(terms)),
                    first: prepared_sql.len(),
                });
                prepared_sql.extend((1..=tables).map(|table| statement.sql(table, terms)));
            }
        }
        Ok(OltpWorkload {
            kind,
            options,
            groups,
            statements,
            prepared_sql,
            statement_names: Kind::ALL.map(|k| k.name().to_owned()).to_vec(),
        })
    }

    /// Which workload it is.
    pub fn kind(&self) -> OltpWorkloadKind {
        self.kind
    }

    /// Its options.
    pub fn options(&self) -> &OltpOptions {
        &self.options
    }

    /// Statements that a connection prepares before it begins; none in the text protocol. sysbench sends
    /// oltp_insert as text too.
    pub(crate) fn prepared_sql(&self) -> &[String] {
        if self.sends_text() { &[] } else { &self.prepared_sql }
    }

    /// How many statements every connection prepares.
    pub fn prepared_count(&self) -> u64 {
        self.prepared_sql().len() as u64
    }

    pub(super) fn sends_text(&self) -> bool {
        self.options.protocol == super::Protocol::Text || self.kind == Insert
    }

    /// The text of a prepared statement, also where it is not prepared.
    pub(super) fn sql(&self, place: usize) -> &str {
        &self.prepared_sql[place]
    }

    pub(crate) fn statement_names(&self) -> &[String] {
        &self.statement_names
    }
}
