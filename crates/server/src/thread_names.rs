//! What the server calls its own threads.
//!
//! The kernel's names of threads are short, and many servers give none: every thread of a MariaDB 10.11 is `mariadbd`. Where the
//! Performance Schema is on, it knows each thread's instrument and its number in the kernel (`threads.THREAD_OS_ID`: MySQL from 5.7.9,
//! MariaDB from 10.5).

use crate::error::Error;
use scaleprof_wire::Client;
use std::collections::BTreeMap;

/// Names of the threads that serve no connection by their numbers in the kernel, such as `innodb/page_cleaner_thread`. Empty where the
/// server does not know them or does not tell us.
///
/// # Errors
/// The connection broke.
pub fn thread_names(client: &mut Client) -> Result<BTreeMap<u32, String>, Error> {
    const SQL: &str = "SELECT THREAD_OS_ID, NAME FROM performance_schema.threads \
                       WHERE TYPE = 'BACKGROUND' AND THREAD_OS_ID IS NOT NULL";
    match client.query(SQL) {
        Ok(answer) => Ok(answer.rows.into_iter().filter_map(named).collect()),
        // It has no such table or column, or does not show it to us.
        Err(error) if error.number().is_some() => Ok(BTreeMap::new()),
        Err(error) => Err(Error::wire("ask for the names of the server's threads")(error)),
    }
}

fn named(row: Vec<Option<String>>) -> Option<(u32, String)> {
    let mut cells = row.into_iter();
    let thread = cells.next()??.parse().ok()?;
    let instrument = cells.next()??;
    let name = instrument.strip_prefix("thread/").unwrap_or(&instrument);
    (!name.is_empty()).then(|| (thread, name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instrument_is_a_name_without_its_kind() {
        let row = |thread: &str, name: &str| vec![Some(thread.to_owned()), Some(name.to_owned())];
        let told = named(row("812", "thread/innodb/page_cleaner_thread"));
        assert_eq!(told, Some((812, "innodb/page_cleaner_thread".to_owned())));
        assert_eq!(named(row("no number", "thread/sql/main")), None);
        assert_eq!(named(row("812", "thread/")), None);
        assert_eq!(named(vec![Some("812".to_owned()), None]), None);
        assert_eq!(named(Vec::new()), None);
    }
}
