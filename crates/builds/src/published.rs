//! Where publishers put the checksum of a file: beside it.

use crate::checksum::{self, Algorithm, Checksum};
use crate::download;
use crate::error::Error;
use crate::progress::Watcher;
use crate::source::without_account;

/// The strongest checksum that lies beside a file on its server.
pub(crate) fn published(url: &str, watcher: &mut Watcher<'_>) -> Result<Option<Checksum>, Error> {
    let (plain, query) = match url.split_once('?') {
        Some((plain, query)) => (plain, format!("?{query}")),
        None => (url, String::new()),
    };
    let file = plain.rsplit('/').next().unwrap_or_default();
    let folder = plain.get(..plain.len() - file.len()).unwrap_or_default();
    let beside = Algorithm::ALL.map(|algorithm| (algorithm, format!("{plain}.{}", algorithm.ending())));
    // MariaDB's archive has one file for all of a folder.
    let for_all = [(Algorithm::Sha256, format!("{folder}sha256sums.txt"))];
    for (algorithm, place) in beside.into_iter().chain(for_all) {
        let text = download::text(&format!("{place}{query}"), watcher)?;
        if let Some(digits) = text.and_then(|text| checksum::published(algorithm, &text, file)) {
            return Ok(Some(Checksum {
                algorithm,
                digits,
                by: without_account(&place),
            }));
        }
    }
    Ok(None)
}
