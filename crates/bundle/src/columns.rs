//! How a field of a row becomes a Parquet column: only types that any engine reads (no unsigned integers).

use crate::UtcMicros;
use bytes::Bytes;
use parquet::basic::{LogicalType, Repetition, TimeUnit};
use parquet::column::reader::get_typed_column_reader;
use parquet::column::writer::{ColumnCloseResult, ColumnWriterImpl, get_column_writer, get_typed_column_writer};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::reader::RowGroupReader;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};
use scaleprof_vocabulary::{
    AccessKind, BranchKind, LatencyKind, MeasurementOutcome, Operation, Role, SettingSource, SymbolSource, ThreadState,
    UnwindStatus, WakerKind,
};
use std::collections::HashMap;
use std::sync::Arc;

/// A type that a field of a row may have.
pub(crate) trait Cell: Sized {
    /// The physical type of Parquet.
    type Physical: DataType;
    /// Whether a value may be missing.
    const OPTIONAL: bool = false;
    /// What the physical type stands for.
    fn logical() -> Option<LogicalType> {
        None
    }
    /// The value to store; none where it is missing.
    fn store(&self) -> Option<<Self::Physical as DataType>::T>;
    /// The value again.
    fn load(stored: Option<<Self::Physical as DataType>::T>) -> Result<Self>;
    /// The same, one with those before it where values of this type can be.
    fn load_shared(stored: Option<<Self::Physical as DataType>::T>, _before: &mut Texts) -> Result<Self> {
        Self::load(stored)
    }
}

/// Texts by where they lie in what was read: rows that name one entry of a dictionary have one.
type Texts = HashMap<(usize, usize), Arc<str>>;

fn present<T>(stored: Option<T>) -> Result<T> {
    stored.ok_or_else(|| ParquetError::General("a value is missing".into()))
}

macro_rules! plain_cell {
    ($rust:ty, $physical:ty) => {
        impl Cell for $rust {
            type Physical = $physical;
            fn store(&self) -> Option<$rust> {
                Some(*self)
            }
            fn load(stored: Option<$rust>) -> Result<Self> {
                present(stored)
            }
        }
    };
}
plain_cell!(i32, Int32Type);
plain_cell!(i64, Int64Type);
plain_cell!(f64, DoubleType);
plain_cell!(bool, BoolType);

impl Cell for UtcMicros {
    type Physical = Int64Type;
    fn logical() -> Option<LogicalType> {
        Some(LogicalType::timestamp(true, TimeUnit::MICROS))
    }
    fn store(&self) -> Option<i64> {
        Some(self.0)
    }
    fn load(stored: Option<i64>) -> Result<Self> {
        present(stored).map(UtcMicros)
    }
}

impl Cell for String {
    type Physical = ByteArrayType;
    fn logical() -> Option<LogicalType> {
        Some(LogicalType::String)
    }
    fn store(&self) -> Option<ByteArray> {
        Some(ByteArray::from(self.as_str()))
    }
    fn load(stored: Option<ByteArray>) -> Result<Self> {
        text_of(&present(stored)?).map(str::to_owned)
    }
}

/// Most bytes of a text that are read. Names have 4 KiB at most, values of settings less; rows without number may share a longer one.
const MOST_TEXT: usize = 8 << 10;

fn text_of(stored: &ByteArray) -> Result<&str> {
    let text = std::str::from_utf8(stored.data()).map_err(|e| ParquetError::General(e.to_string()))?;
    let end = (0..=text.len().min(MOST_TEXT))
        .rev()
        .find(|end| text.is_char_boundary(*end));
    Ok(&text[..end.unwrap_or(0)])
}

/// A text that many rows share.
impl Cell for Arc<str> {
    type Physical = ByteArrayType;
    fn logical() -> Option<LogicalType> {
        String::logical()
    }
    fn store(&self) -> Option<ByteArray> {
        Some(ByteArray::from(&**self))
    }
    fn load(stored: Option<ByteArray>) -> Result<Self> {
        text_of(&present(stored)?).map(Arc::from)
    }
    fn load_shared(stored: Option<ByteArray>, before: &mut Texts) -> Result<Self> {
        let place = stored
            .as_ref()
            .map_or((0, 0), |bytes| (bytes.data().as_ptr() as usize, bytes.len()));
        match before.get(&place) {
            Some(known) => Ok(Arc::clone(known)),
            None => {
                let text = Self::load(stored)?;
                before.insert(place, Arc::clone(&text));
                Ok(text)
            }
        }
    }
}

/// A word of a closed set. It is stored as text, so that any engine reads it.
macro_rules! word_cell {
    ($($word:ty),+) => {
        $(impl Cell for $word {
            type Physical = ByteArrayType;
            fn logical() -> Option<LogicalType> {
                String::logical()
            }
            fn store(&self) -> Option<ByteArray> {
                Some(ByteArray::from(Bytes::from_static(self.name().as_bytes())))
            }
            fn load(stored: Option<ByteArray>) -> Result<Self> {
                <$word>::parse(text_of(&present(stored)?)?).map_err(|e| ParquetError::General(e.to_string()))
            }
        })+
    };
}
word_cell!(
    AccessKind,
    BranchKind,
    LatencyKind,
    MeasurementOutcome,
    Operation,
    Role,
    SettingSource,
    SymbolSource,
    ThreadState,
    UnwindStatus,
    WakerKind
);

impl<C: Cell> Cell for Option<C> {
    type Physical = C::Physical;
    const OPTIONAL: bool = true;
    fn logical() -> Option<LogicalType> {
        C::logical()
    }
    fn store(&self) -> Option<<C::Physical as DataType>::T> {
        self.as_ref().and_then(C::store)
    }
    fn load(stored: Option<<C::Physical as DataType>::T>) -> Result<Self> {
        stored.map(|value| C::load(Some(value))).transpose()
    }
    fn load_shared(stored: Option<<C::Physical as DataType>::T>, before: &mut Texts) -> Result<Self> {
        stored.map(|value| C::load_shared(Some(value), before)).transpose()
    }
}

/// The schema entry of the column that `get` reads.
pub(crate) fn column_type<R, C: Cell>(name: &str, _get: fn(&R) -> &C) -> Result<TypePtr> {
    let repetition = if C::OPTIONAL {
        Repetition::OPTIONAL
    } else {
        Repetition::REQUIRED
    };
    let column = Type::primitive_type_builder(name, C::Physical::get_physical_type())
        .with_repetition(repetition)
        .with_logical_type(C::logical())
        .build()?;
    Ok(Arc::new(column))
}

/// Encodes the columns of one table.
pub(crate) struct Encoder {
    schema: SchemaDescriptor,
    properties: WriterPropertiesPtr,
}

/// A column of one row group as it stands in a file.
pub(crate) struct EncodedColumn {
    pub bytes: Bytes,
    /// What the file's footer says of it.
    pub told: ColumnCloseResult,
}

/// Bytes of a column that is being encoded.
pub(crate) type ColumnBytes = TrackedWrite<Vec<u8>>;

/// A column of rows `R` while its row group is written.
pub(crate) trait OpenColumn<R> {
    /// Takes the column's values of some rows.
    fn add(&mut self, rows: &[R]) -> Result<()>;
    /// Ends the column.
    fn close(self: Box<Self>) -> Result<ColumnCloseResult>;
}

/// The columns of a row group that is being written.
pub(crate) type OpenColumns<'a, R> = Vec<Box<dyn OpenColumn<R> + 'a>>;

/// The column of what `get` reads of a row.
struct FieldColumn<'a, R, C: Cell> {
    writer: ColumnWriterImpl<'a, C::Physical>,
    get: fn(&R) -> &C,
    values: Vec<<C::Physical as DataType>::T>,
    levels: Vec<i16>,
}

impl<R, C: Cell> OpenColumn<R> for FieldColumn<'_, R, C> {
    fn add(&mut self, rows: &[R]) -> Result<()> {
        self.values.clear();
        self.levels.clear();
        for row in rows {
            let stored = (self.get)(row).store();
            if C::OPTIONAL {
                self.levels.push(i16::from(stored.is_some()));
            }
            self.values.extend(stored);
        }
        let levels = C::OPTIONAL.then_some(self.levels.as_slice());
        self.writer.write_batch(&self.values, levels, None).map(|_| ())
    }

    fn close(self: Box<Self>) -> Result<ColumnCloseResult> {
        self.writer.close()
    }
}

impl Encoder {
    pub(crate) fn new(schema: TypePtr, properties: WriterPropertiesPtr) -> Encoder {
        Encoder {
            schema: SchemaDescriptor::new(schema),
            properties,
        }
    }

    /// Begins the column at that place of the schema, of what `get` reads of each row.
    pub(crate) fn open<'a, R: 'a, C: Cell + 'a>(
        &self,
        place: usize,
        bytes: Option<&'a mut ColumnBytes>,
        get: fn(&R) -> &C,
    ) -> Result<Box<dyn OpenColumn<R> + 'a>> {
        let column = self.schema.columns().get(place).zip(bytes);
        let (column, bytes) = column.ok_or_else(|| ParquetError::General("the schema has too few columns".into()))?;
        let pages = Box::new(SerializedPageWriter::new(bytes));
        let writer = get_column_writer(column.clone(), self.properties.clone(), pages);
        Ok(Box::new(FieldColumn {
            writer: get_typed_column_writer(writer),
            get,
            values: Vec::new(),
            levels: Vec::new(),
        }))
    }

    /// Encodes one row group, whose columns `open` begins. `give` gives its rows piece by piece: each goes into all columns before the
    /// next, so that a small one is still in a CPU's cache.
    pub(crate) fn encode_group<R>(
        &self,
        open: impl for<'a> Fn(&Encoder, &'a mut [ColumnBytes]) -> Result<OpenColumns<'a, R>>,
        give: impl FnOnce(&mut dyn FnMut(&[R]) -> Result<()>) -> Result<()>,
    ) -> Result<Vec<EncodedColumn>> {
        let columns = self.schema.columns().iter();
        let mut bytes: Vec<ColumnBytes> = columns.map(|_| TrackedWrite::new(Vec::new())).collect();
        let mut columns = open(self, &mut bytes)?;
        give(&mut |rows| columns.iter_mut().try_for_each(|column| column.add(rows)))?;
        let told = columns.into_iter().map(OpenColumn::close);
        let told = told.collect::<Result<Vec<ColumnCloseResult>>>()?;
        let whole = bytes.into_iter().zip(told).map(|(bytes, told)| {
            let bytes = bytes.into_inner()?.into();
            Ok(EncodedColumn { bytes, told })
        });
        whole.collect()
    }
}

/// Where a column is in its row group.
pub(crate) struct PresentColumn {
    pub position: usize,
    pub rows: usize,
    /// Whether a row may have no value.
    pub may_miss: bool,
}

/// The column `name` of a row group; none where an older version did not write it and it may be empty.
pub(crate) fn present_column<C: Cell>(group: &dyn RowGroupReader, name: &str) -> Result<Option<PresentColumn>> {
    let rows = usize::try_from(group.metadata().num_rows()).map_err(|e| ParquetError::General(e.to_string()))?;
    let position = group
        .metadata()
        .columns()
        .iter()
        .position(|c| c.column_path().parts() == [name.to_owned()]);
    let Some(position) = position else {
        return match C::OPTIONAL {
            true => Ok(None),
            false => Err(ParquetError::General(format!("the column {name} is missing"))),
        };
    };
    let descriptor = group.metadata().column(position).column_descr();
    if descriptor.physical_type() != C::Physical::get_physical_type()
        || descriptor.max_rep_level() != 0
        || descriptor.max_def_level() > 1
    {
        return Err(ParquetError::General(format!("the column {name} has another type")));
    }
    Ok(Some(PresentColumn {
        position,
        rows,
        may_miss: descriptor.max_def_level() == 1,
    }))
}

/// Reads the column `name` of a row group; a column that an older version did not write is empty where it may be.
pub(crate) fn read_column<C: Cell>(group: &dyn RowGroupReader, name: &str) -> Result<std::vec::IntoIter<C>> {
    let Some(column) = present_column::<C>(group, name)? else {
        let total = usize::try_from(group.metadata().num_rows()).map_err(|e| ParquetError::General(e.to_string()))?;
        return Ok((0..total)
            .map(|_| C::load(None))
            .collect::<Result<Vec<_>>>()?
            .into_iter());
    };
    let (total, may_miss) = (column.rows, column.may_miss);
    let mut reader = get_typed_column_reader::<C::Physical>(group.get_column_reader(column.position)?);
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    let mut read = 0;
    while read < total {
        let (records, _, _) = reader.read_records(total - read, may_miss.then_some(&mut levels), None, &mut values)?;
        if records == 0 {
            return Err(ParquetError::General(format!(
                "the column {name} ends after {read} of {total} rows"
            )));
        }
        read += records;
    }
    let mut present = values.iter().cloned();
    let mut texts = Texts::new();
    let cells: Result<Vec<C>> = if may_miss {
        let stored = levels
            .iter()
            .map(|level| (*level == 1).then(|| present.next()).flatten());
        stored.map(|stored| C::load_shared(stored, &mut texts)).collect()
    } else {
        present.map(|value| C::load_shared(Some(value), &mut texts)).collect()
    };
    Ok(cells?.into_iter())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_a_newer_version_is_told_and_not_taken_for_another() {
        let load = |word: &str| ThreadState::load(Some(ByteArray::from(word)));
        assert_eq!(load("runq").expect("a state"), ThreadState::RunQueue);
        let problem = load("dreaming").expect_err("no state");
        assert!(
            problem
                .to_string()
                .contains("\"dreaming\" is no ThreadState that this version knows"),
            "{problem}"
        );
        assert!(ThreadState::load(None).is_err());
        assert_eq!(Option::<Role>::load(None).expect("none"), None);
        assert_eq!(Role::Control.store().expect("a word").data(), b"control");
    }
}
