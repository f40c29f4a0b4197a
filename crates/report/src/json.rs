//! The summary for scripts.

use scaleprof_bundle::Summary;

/// `summary.json`, indented and with a newline at its end.
///
/// # Errors
/// Only if the summary holds something that JSON cannot say; its types hold nothing of the kind.
pub fn summary(summary: &Summary) -> serde_json::Result<String> {
    let mut text = serde_json::to_string_pretty(summary)?;
    text.push('\n');
    Ok(text)
}
