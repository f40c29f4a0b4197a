//! Reading a column page by page, without making a value of every row.
//!
//! Most columns of a large table hold few different values, and Parquet keeps each once, in a dictionary, and for every row its
//! place there. Those places are taken as they are. A page of another encoding than the two that our writer uses is left to
//! the parquet crate.

use crate::Coded;
use crate::columns::{Cell, present_column, read_column};
use crate::hybrid::decode_hybrid;
use parquet::basic::Encoding;
use parquet::column::page::Page;
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::RowGroupReader;
use std::collections::HashMap;
use std::hash::Hash;

/// A value as plain pages and dictionaries have it.
pub(crate) trait Plain: Clone {
    /// Takes the next one off `bytes`.
    fn take(bytes: &mut &[u8]) -> Option<Self>;
}

macro_rules! plain_number {
    ($type:ty) => {
        impl Plain for $type {
            fn take(bytes: &mut &[u8]) -> Option<Self> {
                let (number, rest) = bytes.split_first_chunk()?;
                *bytes = rest;
                Some(<$type>::from_le_bytes(*number))
            }
        }
    };
}
plain_number!(i32);
plain_number!(i64);
plain_number!(f64);

impl Plain for ByteArray {
    fn take(bytes: &mut &[u8]) -> Option<Self> {
        let length = usize::try_from(u32::take(bytes)?).ok()?;
        let (array, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        Some(ByteArray::from(array.to_vec()))
    }
}
plain_number!(u32);

/// Where the values of a column go, in the order of its rows.
trait Rows<C> {
    /// From here on codes are places in these values.
    fn dictionary(&mut self, values: Vec<C>);
    /// The next row's value by its place in the dictionary.
    fn coded(&mut self, code: u32) -> Result<()>;
    /// The next row's value.
    fn plain(&mut self, value: C);
    /// The next row has no value; `value` stands for that.
    fn missing(&mut self, value: C);
    /// Coded rows that stand one behind the other.
    fn all_coded(&mut self, codes: &[u32]) -> Result<()> {
        codes.iter().try_for_each(|code| self.coded(*code))
    }
}

/// Reads the column `name` of a row group as codes.
pub(crate) fn read_coded<C: Cell + Clone + Hash + Eq>(group: &dyn RowGroupReader, name: &str) -> Result<Coded<C>>
where
    <C::Physical as DataType>::T: Plain,
{
    let mut rows = CodedRows::default();
    if read_pages(group, name, &mut rows)? {
        return Coded::new(rows.values, rows.codes).ok_or_else(|| beyond(name));
    }
    Ok(read_column(group, name)?.collect())
}

/// Reads the column `name` of a row group, a value for every row.
pub(crate) fn read_values<C: Cell + Clone>(group: &dyn RowGroupReader, name: &str) -> Result<Vec<C>>
where
    <C::Physical as DataType>::T: Plain,
{
    let mut rows = PlainRows {
        dictionary: Vec::new(),
        values: Vec::new(),
    };
    if read_pages(group, name, &mut rows)? {
        return Ok(rows.values);
    }
    Ok(read_column(group, name)?.collect())
}

fn beyond(name: &str) -> ParquetError {
    ParquetError::General(format!("a row of the column {name} names a value that is not there"))
}

/// Keeps the dictionary, and adds to it what plain pages bring.
struct CodedRows<C> {
    values: Vec<C>,
    codes: Vec<u32>,
    /// Where the dictionary in use begins among the values.
    offset: u32,
    /// Codes of the values that plain pages brought or the dictionary has; made when the first one comes.
    known: HashMap<C, u32>,
    /// The code that stands for no value.
    missing: Option<u32>,
}

impl<C> Default for CodedRows<C> {
    fn default() -> CodedRows<C> {
        CodedRows {
            values: Vec::new(),
            codes: Vec::new(),
            offset: 0,
            known: HashMap::new(),
            missing: None,
        }
    }
}

impl<C: Clone + Hash + Eq> Rows<C> for CodedRows<C> {
    fn dictionary(&mut self, values: Vec<C>) {
        self.offset = self.values.len() as u32;
        self.values.extend(values);
        self.known.clear();
    }

    fn coded(&mut self, code: u32) -> Result<()> {
        self.codes.push(code.saturating_add(self.offset));
        Ok(())
    }

    fn all_coded(&mut self, codes: &[u32]) -> Result<()> {
        let offset = self.offset;
        self.codes.extend(codes.iter().map(|code| code.saturating_add(offset)));
        Ok(())
    }

    fn plain(&mut self, value: C) {
        if self.known.is_empty() {
            self.known = self.values.iter().cloned().zip(0..).collect();
        }
        let values = &mut self.values;
        let code = *self.known.entry(value).or_insert_with_key(|value| {
            values.push(value.clone());
            (values.len() - 1) as u32
        });
        self.codes.push(code);
    }

    fn missing(&mut self, value: C) {
        let values = &mut self.values;
        let code = *self.missing.get_or_insert_with(|| {
            values.push(value);
            (values.len() - 1) as u32
        });
        self.codes.push(code);
    }
}

struct PlainRows<C> {
    dictionary: Vec<C>,
    values: Vec<C>,
}

impl<C: Clone> Rows<C> for PlainRows<C> {
    fn dictionary(&mut self, values: Vec<C>) {
        self.dictionary = values;
    }

    fn coded(&mut self, code: u32) -> Result<()> {
        let value = self
            .dictionary
            .get(code as usize)
            .ok_or_else(|| ParquetError::General("a row names a value that is not in the dictionary".into()))?;
        self.values.push(value.clone());
        Ok(())
    }

    fn plain(&mut self, value: C) {
        self.values.push(value);
    }

    fn missing(&mut self, value: C) {
        self.values.push(value);
    }
}

/// Hands the rows of a column on; false, and some rows handed on or none, where only the parquet crate can read it.
fn read_pages<C: Cell>(group: &dyn RowGroupReader, name: &str, rows: &mut impl Rows<C>) -> Result<bool>
where
    <C::Physical as DataType>::T: Plain,
{
    let Some(column) = present_column::<C>(group, name)? else {
        return Ok(false);
    };
    let mut pages = group.get_column_page_reader(column.position)?;
    let (mut codes, mut levels) = (Vec::new(), Vec::new());
    let mut read = 0;
    while read < column.rows {
        let Some(page) = pages.get_next_page()? else {
            return Err(ParquetError::General(format!(
                "the column {name} ends after {read} of {} rows",
                column.rows
            )));
        };
        let (bytes, count) = (page.buffer().as_ref(), page.num_values() as usize);
        if page.is_dictionary_page() {
            if !matches!(page.encoding(), Encoding::PLAIN | Encoding::PLAIN_DICTIONARY) {
                return Ok(false);
            }
            rows.dictionary(dictionary(bytes, count)?);
            continue;
        }
        if count == 0 || count > column.rows - read {
            return Err(ParquetError::General(format!(
                "the column {name} has pages of other lengths"
            )));
        }
        let Some(body) = without_levels(&page, column.may_miss, count, &mut levels)? else {
            return Ok(false);
        };
        let there = match column.may_miss {
            true => levels.iter().filter(|level| **level == 1).count(),
            false => count,
        };
        match page.encoding() {
            Encoding::PLAIN => plain_rows(body, &levels, count, column.may_miss, rows)?,
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => {
                codes.clear();
                if let Some((width, packed)) = body.split_first().filter(|_| there > 0) {
                    decode_hybrid(packed, *width, there, &mut codes)?;
                }
                coded_rows(&codes, &levels, count, column.may_miss, rows)?;
            }
            _ => return Ok(false),
        }
        read += count;
    }
    Ok(true)
}

/// The values of a dictionary page.
fn dictionary<C: Cell>(mut bytes: &[u8], count: usize) -> Result<Vec<C>>
where
    <C::Physical as DataType>::T: Plain,
{
    let mut values = Vec::with_capacity(count.min(bytes.len()));
    for _ in 0..count {
        let value = Plain::take(&mut bytes).ok_or_else(ends)?;
        values.push(C::load(Some(value))?);
    }
    Ok(values)
}

fn ends() -> ParquetError {
    ParquetError::General("a page ends too early".into())
}

/// What is behind the levels of a data page; `levels` tells of each row whether it has a value, where it may have none. None
/// for levels that are kept in another way than since Parquet 2.
fn without_levels<'p>(page: &'p Page, may_miss: bool, count: usize, levels: &mut Vec<u32>) -> Result<Option<&'p [u8]>> {
    levels.clear();
    let (levels_bytes, body) = match page {
        Page::DataPage {
            buf,
            def_level_encoding,
            ..
        } => {
            if !may_miss {
                return Ok(Some(buf.as_ref()));
            }
            if *def_level_encoding != Encoding::RLE {
                return Ok(None);
            }
            let mut bytes = buf.as_ref();
            let length = u32::take(&mut bytes).ok_or_else(ends)?;
            bytes.split_at_checked(length as usize).ok_or_else(ends)?
        }
        Page::DataPageV2 {
            buf,
            def_levels_byte_len,
            rep_levels_byte_len,
            ..
        } => {
            let bytes = buf.as_ref().get(*rep_levels_byte_len as usize..).ok_or_else(ends)?;
            bytes.split_at_checked(*def_levels_byte_len as usize).ok_or_else(ends)?
        }
        Page::DictionaryPage { .. } => return Ok(None),
    };
    if may_miss {
        decode_hybrid(levels_bytes, 1, count, levels)?;
    }
    Ok(Some(body))
}

fn plain_rows<C: Cell>(
    mut body: &[u8],
    levels: &[u32],
    count: usize,
    may_miss: bool,
    rows: &mut impl Rows<C>,
) -> Result<()>
where
    <C::Physical as DataType>::T: Plain,
{
    for row in 0..count {
        match !may_miss || levels.get(row) == Some(&1) {
            true => rows.plain(C::load(Some(Plain::take(&mut body).ok_or_else(ends)?))?),
            false => rows.missing(C::load(None)?),
        }
    }
    Ok(())
}

fn coded_rows<C: Cell>(
    codes: &[u32],
    levels: &[u32],
    count: usize,
    may_miss: bool,
    rows: &mut impl Rows<C>,
) -> Result<()> {
    if codes.len() == count {
        return rows.all_coded(codes);
    }
    let mut codes = codes.iter();
    for row in 0..count {
        match codes
            .as_slice()
            .first()
            .filter(|_| !may_miss || levels.get(row) == Some(&1))
        {
            Some(code) => {
                rows.coded(*code)?;
                codes.next();
            }
            None => rows.missing(C::load(None)?),
        }
    }
    Ok(())
}
