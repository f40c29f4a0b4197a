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
        let Some(text) = download::text(&format!("{place}{query}"), watcher)? else {
            continue;
        };
        if let Some(digits) = checksum::published(algorithm, &text, file) {
            return Ok(Some(Checksum {
                algorithm,
                digits,
                by: without_account(&place),
            }));
        }
        // The list of a folder need not hold every file; what has the file's own name is of that file.
        if place.starts_with(plain) && checksum::seems_published(algorithm, &text) {
            return Err(Error::Download {
                url: without_account(&place),
                reason: format!("it has no checksum of {file}: read it, and give the right one with --sha256"),
            });
        }
    }
    Ok(None)
}
