//! Whether the client, or others on the machine, and not the server set the limit.

/// Most that X·R/N may differ from 1 in a closed loop.
pub const LITTLE: f64 = 0.02;
/// Most of its threads' time that the client may be on a CPU.
pub const CLIENT_CPU: f64 = 0.7;
/// Most that the client's lag (99th percentile) may be of the median latency.
pub const LAG: f64 = 0.05;
/// From this share of used CPU time on the client's lag is the wait for a CPU that the server has: the run queue, not the
/// client (docs/adr/0006).
pub const BUSY: f64 = 0.85;

/// From this part of the machine's CPU time on, what other programs used is told.
pub const MOST_BY_OTHERS: f64 = 0.05;
/// From this part of the machine's CPU time on, what the hypervisor took is told.
pub const MOST_STOLEN: f64 = 0.02;

/// What is known of the client in one rung; what is none is not judged.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Client {
    /// X·R/N, none in the open loop.
    pub little: Option<f64>,
    /// CPUs that the client used.
    pub cpus: Option<f64>,
    /// Its threads.
    pub threads: Option<u32>,
    /// 99th percentile of the time from a ready socket to being served, milliseconds.
    pub lag_p99_ms: Option<f64>,
    /// Median service time, milliseconds.
    pub median_ms: Option<f64>,
    /// Share of the machine's CPU time that somebody used.
    pub busy_share: Option<f64>,
}

/// X·R/N by Little's law: 1 when every connection was always inside a transaction. `inside_seconds` is the time that
/// connections spent inside transactions during `seconds`; summing the service times of those that ended then would be
/// wrong at both edges. None where there is nothing to divide by.
pub fn little(inside_seconds: f64, seconds: f64, connections: u32) -> Option<f64> {
    let value = inside_seconds / seconds / f64::from(connections);
    value.is_finite().then_some(value)
}

/// Why the client, not the server, set the limit; none where nothing says so.
pub fn client_limit(client: &Client) -> Option<String> {
    let mut reasons = Vec::new();
    if let Some(little) = client.little.filter(|v| (v - 1.0).abs() > LITTLE) {
        reasons.push(format!(
            "connections spent {:.1} % of their time inside transactions (X·R/N = {little:.3})",
            little * 100.0
        ));
    }
    if let (Some(cpus), Some(threads)) = (client.cpus, client.threads.filter(|n| *n > 0))
        && cpus > CLIENT_CPU * f64::from(threads)
    {
        reasons.push(format!("the client used {cpus:.2} CPUs with {threads} threads"));
    }
    if let (Some(lag), Some(median)) = (client.lag_p99_ms, client.median_ms)
        && lag > LAG * median
        && client.busy_share.is_none_or(|busy| busy < BUSY)
    {
        reasons.push(format!(
            "the client answered ready sockets late: 99th percentile {lag:.3} ms, median latency {median:.3} ms"
        ));
    }
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_loop_that_is_always_busy_passes() {
        let little = little(639.0, 10.0, 64);
        let client = Client {
            little,
            cpus: Some(0.5),
            threads: Some(1),
            lag_p99_ms: Some(0.04),
            median_ms: Some(1.0),
            busy_share: Some(0.5),
        };
        assert_eq!(client_limit(&client), None);
        assert_eq!(client_limit(&Client::default()), None);
    }

    #[test]
    fn each_guard_speaks() {
        let limit = |client| client_limit(&client).unwrap();
        assert!(
            limit(Client {
                little: little(600.0, 10.0, 64),
                ..Client::default()
            })
            .contains("0.938")
        );
        assert!(
            limit(Client {
                little: Some(1.03),
                ..Client::default()
            })
            .contains("X·R/N")
        );
        assert!(
            limit(Client {
                cpus: Some(1.5),
                threads: Some(2),
                ..Client::default()
            })
            .contains("1.50 CPUs")
        );
        let late = Client {
            lag_p99_ms: Some(0.2),
            median_ms: Some(1.0),
            ..Client::default()
        };
        assert!(limit(late).contains("late"));
    }

    #[test]
    fn nothing_to_divide_by_is_no_figure() {
        assert_eq!(little(0.0, 0.0, 1), None);
        assert_eq!(little(1.0, 1.0, 0), None);
    }
}
