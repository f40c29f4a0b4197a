//! The nine tables (clause 1.3) and their two further indexes, in the load's own schema.
//!
//! Columns have at least the digits and characters that the specification asks for. W_YTD and D_YTD have three digits
//! more: without think times a warehouse takes in more than 10^10 within hours. HISTORY has no primary key (clause
//! 1.3.1), so InnoDB numbers its rows from a counter that all tables share; for clusters it can be given one.

use super::TpccOptions;
use crate::schema::{SCHEMA, SchemaError, Statistics, analyse, doing};
use scaleprof_wire::Client;

/// A table: its name, its columns, its primary key.
const TABLES: [(&str, &str, &str); 9] = [
    (
        "item",
        "i_id INT NOT NULL, i_im_id INT NOT NULL, i_name VARCHAR(24) NOT NULL, i_price DECIMAL(5,2) NOT NULL, \
         i_data VARCHAR(50) NOT NULL",
        "i_id",
    ),
    (
        "warehouse",
        "w_id INT NOT NULL, w_name VARCHAR(10) NOT NULL, w_street_1 VARCHAR(20) NOT NULL, \
         w_street_2 VARCHAR(20) NOT NULL, w_city VARCHAR(20) NOT NULL, w_state CHAR(2) NOT NULL, w_zip CHAR(9) NOT NULL, \
         w_tax DECIMAL(4,4) NOT NULL, w_ytd DECIMAL(15,2) NOT NULL",
        "w_id",
    ),
    (
        "stock",
        "s_i_id INT NOT NULL, s_w_id INT NOT NULL, s_quantity SMALLINT NOT NULL, s_dist_01 CHAR(24) NOT NULL, \
         s_dist_02 CHAR(24) NOT NULL, s_dist_03 CHAR(24) NOT NULL, s_dist_04 CHAR(24) NOT NULL, s_dist_05 CHAR(24) NOT NULL, \
         s_dist_06 CHAR(24) NOT NULL, s_dist_07 CHAR(24) NOT NULL, s_dist_08 CHAR(24) NOT NULL, s_dist_09 CHAR(24) NOT NULL, \
         s_dist_10 CHAR(24) NOT NULL, s_ytd INT NOT NULL, s_order_cnt INT NOT NULL, s_remote_cnt INT NOT NULL, \
         s_data VARCHAR(50) NOT NULL",
        "s_w_id, s_i_id",
    ),
    (
        "district",
        "d_id TINYINT NOT NULL, d_w_id INT NOT NULL, d_name VARCHAR(10) NOT NULL, d_street_1 VARCHAR(20) NOT NULL, \
         d_street_2 VARCHAR(20) NOT NULL, d_city VARCHAR(20) NOT NULL, d_state CHAR(2) NOT NULL, d_zip CHAR(9) NOT NULL, \
         d_tax DECIMAL(4,4) NOT NULL, d_ytd DECIMAL(15,2) NOT NULL, d_next_o_id INT NOT NULL",
        "d_w_id, d_id",
    ),
    (
        "customer",
        "c_id INT NOT NULL, c_d_id TINYINT NOT NULL, c_w_id INT NOT NULL, c_first VARCHAR(16) NOT NULL, \
         c_middle CHAR(2) NOT NULL, c_last VARCHAR(16) NOT NULL, c_street_1 VARCHAR(20) NOT NULL, \
         c_street_2 VARCHAR(20) NOT NULL, c_city VARCHAR(20) NOT NULL, c_state CHAR(2) NOT NULL, c_zip CHAR(9) NOT NULL, \
         c_phone CHAR(16) NOT NULL, c_since DATETIME NOT NULL, c_credit CHAR(2) NOT NULL, \
         c_credit_lim DECIMAL(12,2) NOT NULL, c_discount DECIMAL(4,4) NOT NULL, c_balance DECIMAL(12,2) NOT NULL, \
         c_ytd_payment DECIMAL(12,2) NOT NULL, c_payment_cnt INT NOT NULL, c_delivery_cnt INT NOT NULL, \
         c_data VARCHAR(500) NOT NULL",
        "c_w_id, c_d_id, c_id",
    ),
    (
        "history",
        "h_c_id INT NOT NULL, h_c_d_id TINYINT NOT NULL, h_c_w_id INT NOT NULL, h_d_id TINYINT NOT NULL, \
         h_w_id INT NOT NULL, h_date DATETIME NOT NULL, h_amount DECIMAL(6,2) NOT NULL, h_data VARCHAR(24) NOT NULL",
        "",
    ),
    (
        "orders",
        "o_id INT NOT NULL, o_d_id TINYINT NOT NULL, o_w_id INT NOT NULL, o_c_id INT NOT NULL, o_entry_d DATETIME NOT NULL, \
         o_carrier_id TINYINT NULL, o_ol_cnt TINYINT NOT NULL, o_all_local TINYINT NOT NULL",
        "o_w_id, o_d_id, o_id",
    ),
    (
        "new_order",
        "no_o_id INT NOT NULL, no_d_id TINYINT NOT NULL, no_w_id INT NOT NULL",
        "no_w_id, no_d_id, no_o_id",
    ),
    (
        "order_line",
        "ol_o_id INT NOT NULL, ol_d_id TINYINT NOT NULL, ol_w_id INT NOT NULL, ol_number TINYINT NOT NULL, \
         ol_i_id INT NOT NULL, ol_supply_w_id INT NOT NULL, ol_delivery_d DATETIME NULL, ol_quantity TINYINT NOT NULL, \
         ol_amount DECIMAL(6,2) NOT NULL, ol_dist_info CHAR(24) NOT NULL",
        "ol_w_id, ol_d_id, ol_o_id, ol_number",
    ),
];

/// The further indexes: customers by last name, orders by customer.
const INDEXES: [(&str, &str, &str); 2] = [
    ("customer", "customer_by_name", "c_w_id, c_d_id, c_last, c_first"),
    ("orders", "orders_by_customer", "o_w_id, o_d_id, o_c_id, o_id"),
];

/// Makes the empty tables in the schema that [`crate::schema::create`] made.
///
/// # Errors
/// A statement fails.
pub fn create_tables(client: &mut Client, options: &TpccOptions) -> Result<(), SchemaError> {
    for (name, columns, key) in TABLES {
        let key = match key {
            "" if options.history_key => ", h_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY".to_owned(),
            "" => String::new(),
            key => format!(", PRIMARY KEY ({key})"),
        };
        client
            .execute(&format!(
                "CREATE TABLE {SCHEMA}.{name} ({columns}{key}) ENGINE = InnoDB"
            ))
            .map_err(doing(format!("making the table {name}")))?;
    }
    Ok(())
}

/// Makes the further indexes, once the rows are there.
///
/// # Errors
/// A statement fails.
pub fn create_indexes(client: &mut Client) -> Result<(), SchemaError> {
    for (table, name, columns) in INDEXES {
        client
            .execute(&format!("CREATE INDEX {name} ON {SCHEMA}.{table} ({columns})"))
            .map_err(doing(format!("making the index {name}")))?;
    }
    Ok(())
}

/// Reads every page of the tables and indexes once, so that the first rung finds them in memory as the others do.
///
/// # Errors
/// A statement fails.
pub fn warm(client: &mut Client, mut statistics: Statistics) -> Result<Statistics, SchemaError> {
    let tables = TABLES.map(|(name, _, key)| {
        let index = if key.is_empty() { "" } else { "FORCE INDEX (PRIMARY)" };
        (name, format!("SELECT COUNT(*) FROM {SCHEMA}.{name} {index}"))
    });
    let indexes = INDEXES.map(|(table, index, columns)| {
        let first = columns.split(',').next().unwrap_or_default();
        let read = format!("SELECT COUNT(*) FROM {SCHEMA}.{table} FORCE INDEX ({index}) WHERE {first} >= 0");
        (table, read)
    });
    for (name, ..) in TABLES {
        if statistics == Statistics::Anew {
            statistics = analyse(client, &format!("{SCHEMA}.{name}"))?;
        }
    }
    for (name, sql) in tables.into_iter().chain(indexes) {
        client
            .execute(&sql)
            .map_err(doing(format!("reading the table {name} into memory")))?;
    }
    Ok(statistics)
}
