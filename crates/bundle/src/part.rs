//! One Parquet file of a table: a part.

use crate::columns::{ColumnBytes, EncodedColumn, Encoder, OpenColumns, column_type, read_column};
use crate::error::BundleError;
use crate::pages::{read_coded, read_values};
use crate::{
    BranchRow, Coded, CounterRow, DataAccessRow, ErrorRow, FrameRow, InstructionRow, LatencyRow, LockRow,
    MeasurementRow, SampleBlock, SampleRow, Samples, SecondRow, SettingRow, StackRow, StateRow,
};
use bytes::Bytes;
use parquet::basic::Compression;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type, TypePtr};
use scaleprof_guard::survive;
use scaleprof_profile::{in_parallel, in_parallel_with};
use std::fs::File;
use std::io::{Read as _, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A row struct that is kept as a Parquet table.
pub(crate) trait Table: Sized + Send + Sync + 'static {
    /// Name of the table and of its folder.
    const NAME: &'static str;
    /// The columns in the order of the struct's fields.
    fn schema() -> Result<Vec<TypePtr>>;
    /// Begins all columns of one row group.
    fn open_columns<'a>(how: &Encoder, bytes: &'a mut [ColumnBytes]) -> Result<OpenColumns<'a, Self>>;
    /// Reads one row group.
    fn read_group(group: &dyn RowGroupReader, into: &mut Vec<Self>) -> Result<()>;
}

/// Maps a row struct to a table: every field is the column of the same name.
macro_rules! table {
    ($row:ident, $name:literal, $first:ident $(, $field:ident)* $(,)?) => {
        impl Table for $row {
            const NAME: &'static str = $name;
            fn schema() -> Result<Vec<TypePtr>> {
                Ok(vec![
                    column_type(stringify!($first), |row: &$row| &row.$first)?,
                    $(column_type(stringify!($field), |row: &$row| &row.$field)?),*
                ])
            }
            fn open_columns<'a>(how: &Encoder, bytes: &'a mut [ColumnBytes]) -> Result<OpenColumns<'a, Self>> {
                let mut bytes = bytes.iter_mut();
                let mut places = 0..;
                let mut place = || places.next().unwrap_or_default();
                Ok(vec![
                    how.open(place(), bytes.next(), |row: &$row| &row.$first)?,
                    $(how.open(place(), bytes.next(), |row: &$row| &row.$field)?),*
                ])
            }
            fn read_group(group: &dyn RowGroupReader, into: &mut Vec<Self>) -> Result<()> {
                let $first = read_column(group, stringify!($first))?;
                $(let mut $field = read_column(group, stringify!($field))?;)*
                for $first in $first {
                    $(let Some($field) = $field.next() else {
                        return Err(ParquetError::General("the columns have different lengths".into()));
                    };)*
                    into.push($row { $first $(, $field)* });
                }
                Ok(())
            }
        }
    };
}

table!(
    MeasurementRow,
    "measurements",
    measurement,
    connections,
    idle_connections,
    repeat,
    offered_rate,
    started_at,
    connect_seconds,
    outcome,
    client_lag_p99_us,
    client_threads,
    client_resident_bytes,
);
table!(
    SecondRow,
    "seconds",
    measurement,
    second,
    started_at,
    duration_ns,
    transactions,
    queries,
    reads,
    writes,
    errors,
    retries,
    service_sum_ns,
    response_sum_ns,
    in_transaction_ns,
    p50_ns,
    p95_ns,
    p99_ns,
    max_ns,
);
table!(
    CounterRow,
    "counters",
    measurement,
    second,
    counter,
    value,
    running_share
);
table!(
    LatencyRow,
    "latency",
    measurement,
    second,
    kind,
    operation,
    number,
    name,
    value_ns,
    count,
);
table!(ErrorRow, "errors", measurement, error_code, statement, count, retried);
table!(SettingRow, "settings", name, value, default_value, set_by);
table!(
    StateRow,
    "states",
    measurement,
    second,
    role,
    thread,
    name,
    state,
    nanoseconds,
    lifetime_ns,
);
table!(
    SampleRow,
    "samples",
    measurement,
    second,
    time_us,
    thread,
    role,
    cpu,
    state,
    stack,
    unwind_status,
    weight_ns,
    lock,
    waker_kind,
    waker_stack,
    holder_stack,
    holder_state,
);
table!(StackRow, "stacks", stack, parent, frame, depth);
table!(
    FrameRow,
    "frames",
    frame,
    module,
    build_id,
    address,
    function,
    inlined,
    file,
    line,
    symbol_source,
);
table!(
    LockRow,
    "locks",
    measurement,
    lock,
    name,
    module,
    operation,
    waits,
    wait_ns,
    holder_stack,
    holder_samples,
);
table!(
    BranchRow,
    "branches",
    measurement,
    from_module,
    from_build_id,
    from_function,
    from_address,
    to_module,
    to_build_id,
    to_function,
    to_address,
    taken,
    with_prediction,
    mispredicted,
    with_cycles,
    cycles,
);
table!(
    InstructionRow,
    "instructions",
    module,
    build_id,
    function,
    function_start,
    address,
    length,
    text,
    file,
    line,
    inlined,
    branch,
    target,
    in_spin_loop,
    access,
    data_address,
    data_size,
    locked,
);

table!(
    DataAccessRow,
    "data_accesses",
    module,
    build_id,
    line_pair_address,
    variable,
    variable_address,
    variable_size,
    is_lock,
    function,
    call_sites,
    rarely_run,
    instruction,
    sampled_at,
    sampled_after,
    access,
    locked,
    in_loop,
    in_spin_loop,
    callee,
);

/// Rows of one row group where a part has several.
const GROUP: usize = 1 << 16;
/// Groups that are in memory at once, encoded: so many CPUs are used at most.
const GROUPS_AT_ONCE: usize = 4;
/// Rows that go into all columns before the next: some 200 KB of them stay in a CPU's cache.
const ROWS_AT_ONCE: usize = 1 << 10;

/// Rows that are made when they are written, on several CPUs.
pub(crate) struct RowsToCome<'a, T> {
    pub count: usize,
    /// Makes those at these places, below `count`.
    pub make: &'a (dyn Fn(Range<usize>) -> Vec<T> + Sync),
}

impl<T: 'static> RowsToCome<'_, T> {
    pub(crate) fn none() -> RowsToCome<'static, T> {
        RowsToCome {
            count: 0,
            make: &|_| Vec::new(),
        }
    }

    /// The places, in pieces of one row group each.
    fn groups(&self) -> Vec<Range<usize>> {
        pieces(0..self.count, GROUP).collect()
    }

    /// Those at these places.
    fn rows(&self, places: Range<usize>) -> Result<Vec<T>> {
        let (made, asked) = ((self.make)(places.clone()), places.len());
        match made.len() == asked {
            true => Ok(made),
            false => Err(ParquetError::General(format!(
                "{} rows were made for {asked} places",
                made.len()
            ))),
        }
    }
}

/// These places in pieces of so many.
fn pieces(places: Range<usize>, length: usize) -> impl Iterator<Item = Range<usize>> {
    let begins = places.clone().step_by(length);
    begins.map(move |begin| begin..(begin + length).min(places.end))
}

/// Writes `rows` as one Parquet file, and then those to come, so many at a time that they take little memory. A table without rows
/// keeps its schema, so that a query over all parts still finds it.
pub(crate) fn write_groups<T: Table, W: Write + Send>(out: W, rows: &[T], more: &RowsToCome<'_, T>) -> Result<W> {
    let schema = Type::group_type_builder(T::NAME).with_fields(T::schema()?).build()?;
    let mut properties = WriterProperties::builder();
    if T::NAME == SampleRow::NAME {
        // Of millions of samples nobody looks for one by the least and the largest of these words, and finding them takes comparing all.
        for word in ["role", "state", "unwind_status", "waker_kind", "holder_state"] {
            properties = properties.set_column_statistics_enabled(ColumnPath::from(word), EnabledStatistics::None);
        }
        // Hardly two times are equal: a dictionary of them costs time and room.
        properties = properties.set_column_dictionary_enabled(ColumnPath::from("time_us"), false);
    }
    for number in mostly_different::<T>() {
        properties = properties.set_column_dictionary_enabled(ColumnPath::from(*number), false);
    }
    let properties = properties
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(vec![KeyValue::new(
            "scaleprof.schema".into(),
            crate::SCHEMA.to_string(),
        )]))
        .build();
    let (schema, properties) = (Arc::new(schema), Arc::new(properties));
    let mut writer = SerializedFileWriter::new(out, schema.clone(), properties.clone())?;
    let how = Encoder::new(schema, properties);
    let mut append = |columns: Result<Vec<EncodedColumn>>| -> Result<()> {
        let mut group = writer.next_row_group()?;
        for EncodedColumn { bytes, told } in columns? {
            group.append_column(&bytes, told)?;
        }
        group.close()?;
        Ok(())
    };
    if !rows.is_empty() {
        append(how.encode_group(T::open_columns, |add| rows.chunks(ROWS_AT_ONCE).try_for_each(add)))?;
    }
    for some in more.groups().chunks(GROUPS_AT_ONCE) {
        let encode = |places: Range<usize>| {
            how.encode_group(T::open_columns, |add| {
                pieces(places, ROWS_AT_ONCE).try_for_each(|places| add(&more.rows(places)?))
            })
        };
        in_parallel(some.to_vec(), encode)
            .into_iter()
            .try_for_each(&mut append)?;
    }
    writer.into_inner()
}

/// The columns in which no two rows of a table have the same, or few: a dictionary takes more room there, and time. Not the parents of stacks,
/// of which a large recording has a seventh less with one.
fn mostly_different<T: Table>() -> &'static [&'static str] {
    match T::NAME {
        StackRow::NAME => &["stack"],
        FrameRow::NAME => &["frame", "address"],
        _ => &[],
    }
}

/// How the groups of a file are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Groups {
    /// On this thread.
    OneByOne,
    /// On all CPUs.
    AtTheSameTime,
}

/// Appends the rows of one Parquet file to `into`.
pub(crate) fn read_part<T: Table>(path: &Path, into: &mut Vec<T>) -> std::result::Result<(), BundleError> {
    let mut rows = read_groups(path, Groups::OneByOne, T::read_group)?;
    into.append(&mut rows);
    Ok(())
}

/// Reads one Parquet file of the table `samples`.
pub(crate) fn read_samples(path: &Path, how: Groups) -> std::result::Result<Vec<SampleBlock>, BundleError> {
    read_groups(path, how, read_sample_group)
}

/// A file that is not longer is read at once: a column of a page each takes more calls than that.
const READ_AT_ONCE: u64 = 4 << 20;

/// The file of a part.
enum Opened {
    Whole(Bytes),
    OnDisk,
}

impl Opened {
    fn at(path: &Path) -> std::io::Result<Opened> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        if length > READ_AT_ONCE {
            return Ok(Opened::OnDisk);
        }
        let mut bytes = Vec::with_capacity(length as usize);
        file.read_to_end(&mut bytes)?;
        Ok(Opened::Whole(bytes.into()))
    }

    /// A file has one place at which it is read next: each thread opens its own.
    fn reader(&self, path: &Path) -> Result<Box<dyn FileReader>> {
        Ok(match self {
            Opened::Whole(bytes) => Box::new(SerializedFileReader::new(bytes.clone())?),
            Opened::OnDisk => Box::new(SerializedFileReader::new(File::open(path)?)?),
        })
    }
}

/// What is wrong where the parquet crate says nothing.
const CONTRADICTS: &str = "its inner lengths contradict each other";

fn read_groups<T: Send>(
    path: &Path,
    how: Groups,
    read_group: impl Fn(&dyn RowGroupReader, &mut Vec<T>) -> Result<()> + Sync,
) -> std::result::Result<Vec<T>, BundleError> {
    let opened = Opened::at(path).map_err(BundleError::io("read", path))?;
    let read = || -> Result<Vec<T>> {
        let reader = opened.reader(path)?;
        let groups = reader.num_row_groups();
        let mut rows = Vec::new();
        if groups <= 1 || how == Groups::OneByOne {
            for index in 0..groups {
                read_group(reader.get_row_group(index)?.as_ref(), &mut rows)?;
            }
            return Ok(rows);
        }
        let contradicts = || ParquetError::General(CONTRADICTS.to_owned());
        let open = |_| survive(|| opened.reader(path)).unwrap_or_else(|| Err(contradicts()));
        let read_one = |reader: &mut Result<Box<dyn FileReader>>, index| -> Result<Vec<T>> {
            let reader = reader
                .as_ref()
                .map_err(|error| ParquetError::General(error.to_string()))?;
            let read = || {
                let mut of_group = Vec::new();
                read_group(reader.get_row_group(index)?.as_ref(), &mut of_group)?;
                Ok(of_group)
            };
            survive(read).unwrap_or_else(|| Err(contradicts()))
        };
        let (groups, _) = in_parallel_with((0..groups).collect(), open, read_one);
        for of_group in groups {
            rows.append(&mut of_group?);
        }
        Ok(rows)
    };
    // The parquet crate asserts what a damaged footer or page may break; one bad byte must not end the program.
    let problem = match survive(read) {
        Some(Ok(rows)) => return Ok(rows),
        Some(Err(error)) => error.to_string(),
        None => CONTRADICTS.to_owned(),
    };
    Err(BundleError::Part {
        path: path.to_owned(),
        problem,
    })
}

/// The samples of a row group, one block a measurement.
fn read_sample_group(group: &dyn RowGroupReader, into: &mut Vec<SampleBlock>) -> Result<()> {
    macro_rules! read {
        ($how:ident, $field:ident) => {{
            // The name of a column is that of the row's field.
            let _ = |row: &SampleRow| {
                let _ = &row.$field;
            };
            $how(group, stringify!($field))?
        }};
    }
    let measurements: Coded<i32> = read!(read_coded, measurement);
    let block = SampleBlock {
        measurement: measurements.get(0).copied().unwrap_or_default(),
        second: read!(read_coded, second),
        time_us: read!(read_values, time_us),
        thread: read!(read_coded, thread),
        role: read!(read_coded, role),
        cpu: read!(read_coded, cpu),
        state: read!(read_coded, state),
        stack: read!(read_coded, stack),
        unwind_status: read!(read_coded, unwind_status),
        weight_ns: read!(read_values, weight_ns),
        lock: read!(read_coded, lock),
        waker_kind: read!(read_coded, waker_kind),
        waker_stack: read!(read_coded, waker_stack),
        holder_stack: read!(read_coded, holder_stack),
        holder_state: read!(read_coded, holder_state),
    };
    let is_of_one = || measurements.codes().windows(2).all(|pair| pair[0] == pair[1]);
    match is_of_one() {
        true => into.push(block),
        // Another program laid the measurements into one part.
        false => {
            let rows = block.rows().zip(measurements.codes()).filter_map(|(row, code)| {
                let measurement = *measurements.values().get(*code as usize)?;
                Some(SampleRow { measurement, ..row })
            });
            into.extend(Samples::from_iter(rows).into_blocks());
        }
    }
    Ok(())
}
