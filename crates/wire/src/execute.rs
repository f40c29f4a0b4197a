//! Ready-made EXECUTE packets: the hot path copies one and writes the values.

/// A kind of parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parameter {
    /// MYSQL_TYPE_LONG, 4 bytes, as sysbench binds its INT.
    Int,
    /// MYSQL_TYPE_STRING with fewer than 251 bytes, so that its length is one byte.
    ShortString,
    /// MYSQL_TYPE_NEWDECIMAL: the digits as a string, and the server computes with all of them.
    Decimal,
}

const COM_STMT_EXECUTE: u8 = 0x17;
const TYPE_LONG: [u8; 2] = [0x03, 0x00];
const TYPE_STRING: [u8; 2] = [0xfe, 0x00];
const TYPE_DECIMAL: [u8; 2] = [0xf6, 0x00];

/// The EXECUTE packet of one statement without its values.
///
/// The types of the parameters go with the first execution on a connection only (`new_params_bound_flag`).
#[derive(Debug, Clone)]
pub struct ExecuteTemplate {
    /// Payload up to and with the null bitmap; the statement's id stands at 1..5.
    head: Vec<u8>,
    types: Vec<u8>,
    parameters: Vec<Parameter>,
}

impl ExecuteTemplate {
    /// A template for a statement with these parameters.
    pub fn new(parameters: &[Parameter]) -> Self {
        let mut head = vec![COM_STMT_EXECUTE, 0, 0, 0, 0, 0, 1, 0, 0, 0];
        head.resize(head.len() + parameters.len().div_ceil(8), 0);
        let types = parameters
            .iter()
            .flat_map(|p| match p {
                Parameter::Int => TYPE_LONG,
                Parameter::ShortString => TYPE_STRING,
                Parameter::Decimal => TYPE_DECIMAL,
            })
            .collect();
        ExecuteTemplate {
            head,
            types,
            parameters: parameters.to_vec(),
        }
    }

    /// Kinds of its parameters.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Begins a packet at the end of `out`; values are to be pushed with [`Self::push_int`] and [`Self::push_string`] and
    /// the packet closed with [`Self::finish`].
    #[inline]
    pub fn begin(&self, statement: u32, with_types: bool, out: &mut Vec<u8>) -> usize {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.head);
        out[start + 5..start + 9].copy_from_slice(&statement.to_le_bytes());
        if !self.parameters.is_empty() {
            out.push(u8::from(with_types));
            if with_types {
                out.extend_from_slice(&self.types);
            }
        }
        start
    }

    /// Writes the value of an [`Parameter::Int`].
    #[inline]
    pub fn push_int(value: i32, out: &mut Vec<u8>) {
        out.extend_from_slice(&value.to_le_bytes());
    }

    /// Writes the value of a [`Parameter::ShortString`] or of a [`Parameter::Decimal`].
    #[inline]
    pub fn push_string(value: &[u8], out: &mut Vec<u8>) {
        debug_assert!(value.len() < 251, "a short string has fewer than 251 bytes");
        out.push(value.len() as u8);
        out.extend_from_slice(value);
    }

    /// Writes the length of the packet that began at `start` into its header.
    #[inline]
    pub fn finish(start: usize, out: &mut [u8]) {
        let length = (out.len() - start - 4) as u32;
        out[start..start + 3].copy_from_slice(&length.to_le_bytes()[..3]);
    }
}

/// A whole COM_QUERY packet (or several, where the statement is longer than 16 MiB).
pub fn query_packet(sql: &[u8]) -> Vec<u8> {
    const COM_QUERY: u8 = 0x03;
    let mut payload = Vec::with_capacity(sql.len() + 1);
    payload.push(COM_QUERY);
    payload.extend_from_slice(sql);
    let mut out = Vec::with_capacity(payload.len() + 4);
    let mut sequence = 0_u8;
    let mut rest = &payload[..];
    loop {
        let length = rest.len().min(crate::packet::MAX_PAYLOAD);
        out.extend_from_slice(&(length as u32).to_le_bytes()[..3]);
        out.push(sequence);
        sequence = sequence.wrapping_add(1);
        out.extend_from_slice(&rest[..length]);
        rest = &rest[length..];
        if length < crate::packet::MAX_PAYLOAD {
            return out;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_execute_packet_has_the_layout_of_the_manual() {
        let template = ExecuteTemplate::new(&[Parameter::ShortString, Parameter::Int]);
        let mut out = Vec::new();
        let start = template.begin(7, true, &mut out);
        ExecuteTemplate::push_string(b"ab", &mut out);
        ExecuteTemplate::push_int(258, &mut out);
        ExecuteTemplate::finish(start, &mut out);
        let expected = [
            23, 0, 0, 0, // length, sequence
            0x17, 7, 0, 0, 0, 0, 1, 0, 0, 0, // command, id, flags, iterations
            0, 1, 0xfe, 0, 3, 0, // nulls, types follow, string, long
            2, b'a', b'b', 2, 1, 0, 0,
        ];
        assert_eq!(out, expected);
        let start = template.begin(7, false, &mut out);
        assert_eq!(start, expected.len());
        assert_eq!(out[start + 14..], [0, 0], "nulls, no types");
    }

    #[test]
    fn a_statement_of_exactly_16_mib_is_closed_by_an_empty_packet() {
        let sql = vec![b' '; crate::packet::MAX_PAYLOAD - 1];
        let out = query_packet(&sql);
        assert_eq!(out.len(), 4 + crate::packet::MAX_PAYLOAD + 4);
        assert_eq!(out[out.len() - 4..], [0, 0, 0, 1]);
    }
}
