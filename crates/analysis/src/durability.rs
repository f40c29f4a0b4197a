//! What a commit is worth: a server that may lose it is faster, which a reader has to know before comparing it.

use scaleprof_bundle::SettingRow;

/// Values of innodb_flush_log_at_trx_commit with which a commit is on the disk when it is over; 3 is MariaDB's, and does so in two steps.
const DURABLE: [&str; 2] = ["1", "3"];

/// In words, where a crash may lose what was committed; none where it may not, or where the settings are not known.
pub(crate) fn relaxed(settings: &[SettingRow]) -> Option<String> {
    let value = |name: &str| {
        let found = settings.iter().find(|row| row.name == name);
        found.map(|row| row.value.as_str())
    };
    let log = value("innodb_flush_log_at_trx_commit").filter(|value| !DURABLE.contains(value));
    let writes_binary_log = value("log_bin").is_some_and(|value| value == "1" || value.eq_ignore_ascii_case("ON"));
    let binary_log = value("sync_binlog").filter(|value| writes_binary_log && *value != "1");
    let who = match log {
        Some("0") => "A crash of the server or the machine",
        _ => "A crash of the machine",
    };
    let named = [("innodb_flush_log_at_trx_commit", log), ("sync_binlog", binary_log)];
    let settings: Vec<String> = named
        .into_iter()
        .filter_map(|(name, value)| Some(format!("{name} = {}", value?)))
        .collect();
    (!settings.is_empty()).then(|| format!("{who} may lose commits ({})", settings.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(of: &[(&str, &str)]) -> Vec<SettingRow> {
        of.iter().map(|(name, value)| SettingRow::new(*name, *value)).collect()
    }

    #[test]
    fn what_a_crash_may_lose_is_said_with_its_settings() {
        let words = |of: &[(&str, &str)]| relaxed(&settings(of));
        assert_eq!(words(&[]), None);
        assert_eq!(
            words(&[("innodb_flush_log_at_trx_commit", "1"), ("sync_binlog", "0")]),
            None
        );
        let relaxed = words(&[
            ("innodb_flush_log_at_trx_commit", "2"),
            ("sync_binlog", "0"),
            ("log_bin", "ON"),
        ]);
        let relaxed = relaxed.expect("relaxed");
        assert!(relaxed.contains("crash of the machine may lose commits"), "{relaxed}");
        assert!(relaxed.contains("= 2, sync_binlog = 0"), "{relaxed}");
    }
}
