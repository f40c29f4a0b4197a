//! The twelve consistency conditions (clauses 3.3.2.1 to 3.3.2.12), as SQL that finds the rows that break them.
//!
//! They hold after the tables are filled and after any number of complete transactions, but for the eleventh, which the
//! specification asks of the initial population alone: every delivery takes away one row of NEW-ORDER. Customers count
//! their deliveries, so here it holds with these added, and at first these are none.

use crate::schema::{SchemaError, doing};
use scaleprof_wire::{Client, ResultSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

/// One of the twelve conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition {
    /// Its number, 1 to 12: that of clause 3.3.2.N.
    pub number: u8,
    /// What must hold, in the specification's words for the columns.
    pub holds: &'static str,
    /// A query of the rows that break it: the keys of the row, and behind them the two sides that should be equal.
    sql: &'static str,
}

/// A condition that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub condition: Condition,
    /// Places that break it, as far as they were looked for.
    pub places: usize,
    /// The first of them with its two sides: `d_w_id 1, d_id 2, orders 3001, next 3005`.
    pub first: String,
}

/// Places that are looked for: one is enough to tell that a condition does not hold.
const MOST_PLACES: usize = 1000;

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Condition { number, holds, .. } = self.condition;
        let places = match self.places {
            1 => "one place".to_owned(),
            MOST_PLACES.. => format!("{MOST_PLACES} places or more"),
            places => format!("{places} places"),
        };
        write!(
            f,
            "condition {number} (clause 3.3.2.{number}: {holds}) does not hold in {places}, first at {}",
            self.first
        )
    }
}

impl Condition {
    /// All twelve, in their order.
    pub const ALL: [Condition; 12] = [
        Condition {
            number: 1,
            holds: "W_YTD = sum(D_YTD)",
            sql: "SELECT w_id, w_ytd, SUM(d_ytd) AS sum_d_ytd FROM warehouse LEFT JOIN district ON d_w_id = w_id \
                  GROUP BY w_id, w_ytd HAVING sum_d_ytd IS NULL OR w_ytd <> sum_d_ytd",
        },
        Condition {
            number: 2,
            holds: "D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)",
            sql: "SELECT d_w_id, d_id, d_next_o_id - 1 AS last, last_order, last_new_order FROM district \
                  LEFT JOIN (SELECT o_w_id, o_d_id, MAX(o_id) AS last_order FROM orders GROUP BY o_w_id, o_d_id) AS o \
                  ON o_w_id = d_w_id AND o_d_id = d_id \
                  LEFT JOIN (SELECT no_w_id, no_d_id, MAX(no_o_id) AS last_new_order FROM new_order GROUP BY no_w_id, no_d_id) AS n \
                  ON no_w_id = d_w_id AND no_d_id = d_id \
                  WHERE last_order IS NULL OR d_next_o_id - 1 <> last_order \
                  OR (last_new_order IS NOT NULL AND d_next_o_id - 1 <> last_new_order)",
        },
        Condition {
            number: 3,
            holds: "max(NO_O_ID) - min(NO_O_ID) + 1 = rows of NEW-ORDER",
            sql: "SELECT no_w_id, no_d_id, MAX(no_o_id) - MIN(no_o_id) + 1 AS numbers, COUNT(*) AS counted FROM new_order \
                  GROUP BY no_w_id, no_d_id HAVING numbers <> counted",
        },
        Condition {
            number: 4,
            holds: "sum(O_OL_CNT) = rows of ORDER-LINE",
            sql: "SELECT d_w_id, d_id, ordered, counted FROM district \
                  LEFT JOIN (SELECT o_w_id, o_d_id, SUM(o_ol_cnt) AS ordered FROM orders GROUP BY o_w_id, o_d_id) AS o \
                  ON o_w_id = d_w_id AND o_d_id = d_id \
                  LEFT JOIN (SELECT ol_w_id, ol_d_id, COUNT(*) AS counted FROM order_line GROUP BY ol_w_id, ol_d_id) AS l \
                  ON ol_w_id = d_w_id AND ol_d_id = d_id WHERE NOT (ordered <=> counted)",
        },
        Condition {
            number: 5,
            holds: "O_CARRIER_ID is null where NEW-ORDER has the order, and only there",
            sql: "SELECT o_w_id, o_d_id, o_id, o_carrier_id, no_o_id FROM orders \
                  LEFT JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id \
                  WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)",
        },
        Condition {
            number: 6,
            holds: "O_OL_CNT = rows of ORDER-LINE of the order",
            sql: "SELECT o_w_id, o_d_id, o_id, o_ol_cnt, COUNT(ol_number) AS counted FROM orders \
                  LEFT JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
                  GROUP BY o_w_id, o_d_id, o_id, o_ol_cnt HAVING o_ol_cnt <> counted",
        },
        Condition {
            number: 7,
            holds: "OL_DELIVERY_D is null where O_CARRIER_ID is, and only there",
            sql: "SELECT ol_w_id, ol_d_id, ol_o_id, ol_number, ol_delivery_d, o_carrier_id FROM order_line \
                  LEFT JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id \
                  WHERE o_id IS NULL OR (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)",
        },
        Condition {
            number: 8,
            holds: "W_YTD = sum(H_AMOUNT)",
            sql: "SELECT w_id, w_ytd, paid FROM warehouse \
                  LEFT JOIN (SELECT h_w_id, SUM(h_amount) AS paid FROM history GROUP BY h_w_id) AS h ON h_w_id = w_id \
                  WHERE paid IS NULL OR w_ytd <> paid",
        },
        Condition {
            number: 9,
            holds: "D_YTD = sum(H_AMOUNT)",
            sql: "SELECT d_w_id, d_id, d_ytd, paid FROM district \
                  LEFT JOIN (SELECT h_w_id, h_d_id, SUM(h_amount) AS paid FROM history GROUP BY h_w_id, h_d_id) AS h \
                  ON h_w_id = d_w_id AND h_d_id = d_id WHERE paid IS NULL OR d_ytd <> paid",
        },
        Condition {
            number: 10,
            holds: "C_BALANCE = sum(OL_AMOUNT) of delivered lines - sum(H_AMOUNT)",
            sql: "SELECT c_w_id, c_d_id, c_id, c_balance, COALESCE(delivered, 0) - COALESCE(paid, 0) AS expected FROM customer \
                  LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS delivered FROM orders \
                  JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
                  WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) AS d \
                  ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
                  LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, SUM(h_amount) AS paid FROM history \
                  GROUP BY h_c_w_id, h_c_d_id, h_c_id) AS h \
                  ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id \
                  WHERE c_balance <> COALESCE(delivered, 0) - COALESCE(paid, 0)",
        },
        Condition {
            number: 11,
            holds: "rows of ORDER - rows of NEW-ORDER = 2100 + deliveries",
            sql: "SELECT d_w_id, d_id, orders, COALESCE(new_orders, 0) AS new_orders, delivered FROM district \
                  LEFT JOIN (SELECT o_w_id, o_d_id, COUNT(*) AS orders FROM orders GROUP BY o_w_id, o_d_id) AS o \
                  ON o_w_id = d_w_id AND o_d_id = d_id \
                  LEFT JOIN (SELECT no_w_id, no_d_id, COUNT(*) AS new_orders FROM new_order GROUP BY no_w_id, no_d_id) AS n \
                  ON no_w_id = d_w_id AND no_d_id = d_id \
                  LEFT JOIN (SELECT c_w_id, c_d_id, SUM(c_delivery_cnt) AS delivered FROM customer GROUP BY c_w_id, c_d_id) AS c \
                  ON c_w_id = d_w_id AND c_d_id = d_id \
                  WHERE NOT (orders - COALESCE(new_orders, 0) <=> 2100 + delivered)",
        },
        Condition {
            number: 12,
            holds: "C_BALANCE + C_YTD_PAYMENT = sum(OL_AMOUNT) of delivered lines",
            sql: "SELECT c_w_id, c_d_id, c_id, c_balance + c_ytd_payment AS account, COALESCE(delivered, 0) AS delivered FROM customer \
                  LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS delivered FROM orders \
                  JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
                  WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) AS d \
                  ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
                  WHERE c_balance + c_ytd_payment <> COALESCE(delivered, 0)",
        },
    ];

    /// Looks for places that break it, in the tables of the schema that the connection is in.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn check(&self, client: &mut Client) -> Result<Option<Violation>, SchemaError> {
        let sql = format!("{} LIMIT {MOST_PLACES}", self.sql);
        let found = client
            .query(&sql)
            .map_err(doing(format!("checking TPC-C's consistency condition {}", self.number)))?;
        Ok(found.rows.first().map(|first| Violation {
            condition: *self,
            places: found.rows.len(),
            first: place(&found, first),
        }))
    }
}

/// A row with the names of its columns.
fn place(found: &ResultSet, row: &[Option<String>]) -> String {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "NULL".to_owned());
    let named = found.columns.iter().zip(row);
    let words: Vec<String> = named.map(|(name, cell)| format!("{name} {}", value(cell))).collect();
    words.join(", ")
}

/// Checks all twelve conditions on the tables of a schema, as they are at one moment; gives those that do not hold.
///
/// # Errors
/// The server does not answer, or `stop` was set.
pub fn check_consistency(client: &mut Client, schema: &str, stop: &AtomicBool) -> Result<Vec<Violation>, SchemaError> {
    for statement in [
        &format!("USE {schema}"),
        // All twelve of one snapshot, whatever the server's own level is.
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "START TRANSACTION WITH CONSISTENT SNAPSHOT",
    ] {
        client
            .execute(statement)
            .map_err(doing("beginning to check TPC-C's consistency"))?;
    }
    let mut violations = Vec::new();
    for condition in Condition::ALL {
        if stop.load(Ordering::Relaxed) {
            return Err(SchemaError::Stopped);
        }
        violations.extend(condition.check(client)?);
    }
    client
        .execute("COMMIT")
        .map_err(doing("ending the check of TPC-C's consistency"))?;
    Ok(violations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_conditions_are_numbered_by_their_clauses() {
        assert!(Condition::ALL.iter().map(|condition| condition.number).eq(1..=12));
    }

    #[test]
    fn a_violation_says_what_does_not_hold_where_and_with_which_numbers() {
        let found = ResultSet {
            columns: ["w_id", "w_ytd", "sum_d_ytd"].map(str::to_owned).to_vec(),
            ..ResultSet::default()
        };
        let row = [Some("1".to_owned()), Some("300000.00".to_owned()), None];
        let violation = Violation {
            condition: Condition::ALL[0],
            places: 1,
            first: place(&found, &row),
        };
        assert_eq!(
            violation.to_string(),
            "condition 1 (clause 3.3.2.1: W_YTD = sum(D_YTD)) does not hold in one place, first at w_id 1, w_ytd 300000.00, \
             sum_d_ytd NULL"
        );
    }
}
