//! Whether a file given beside a bundle is the server that ran: addresses of one build mean nothing in another, whatever its name.

use anyhow::bail;
use scaleprof_bundle::Bundle;
use scaleprof_server::identify::content_hash;
use std::path::Path;

/// Checks a file that is called like the bundle's server, by what the bundle knows of that: its build-id, or the hash of its bytes
/// where it has none. Other files (libraries) are told apart by the build-ids of the samples.
///
/// # Errors
/// It is another build, or cannot be read.
pub(crate) fn must_have_run(
    bundle: &Bundle,
    path: &Path,
    (name, build_id): (&str, Option<&str>),
) -> anyhow::Result<()> {
    let server = &bundle.manifest.server;
    if server.binary.as_deref() != Some(name) {
        return Ok(());
    }
    let (ran, given) = match (&server.build_id, bundle.server_fingerprint()) {
        (Some(ran), _) => {
            let given = build_id.map_or_else(|| "no build-id".to_owned(), |id| format!("build-id {id}"));
            (format!("build-id {ran}"), given)
        }
        (None, Some(ran)) => (ran.to_owned(), content_hash(path)?),
        (None, None) => return Ok(()),
    };
    if ran != given {
        bail!(
            "{} is another build of {name} (build-id {given}, in the bundle {ran}), so addresses differ\nfix: name the \
             file that ran",
            path.display()
        );
    }
    Ok(())
}
