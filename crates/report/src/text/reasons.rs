//! What is told once for everything that it holds of.

/// What has one reason together, reasons in the order in which they come first.
pub(super) fn by_reason<Reason: PartialEq, Of>(all: impl IntoIterator<Item = (Reason, Of)>) -> Vec<(Reason, Vec<Of>)> {
    let mut found: Vec<(Reason, Vec<Of>)> = Vec::new();
    for (reason, of) in all {
        match found.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, others)) => others.push(of),
            None => found.push((reason, vec![of])),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::by_reason;

    #[test]
    fn tells_a_reason_once_where_it_came_first() {
        let all = [("no root", "runq"), ("no counters", "clock"), ("no root", "lock")];
        let expected = vec![("no root", vec!["runq", "lock"]), ("no counters", vec!["clock"])];
        assert_eq!(by_reason(all), expected);
    }
}
