//! The statements of the five transactions.

use scaleprof_wire::Parameter;

/// A statement; the comment behind each transaction's file has the clause that asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(super) enum Statement {
    // New-Order.
    LockDistrict,
    CountOrder,
    InsertOrder,
    InsertNewOrder,
    LockStockOfOne,
    LockStock,
    SelectItems,
    SelectTaxAndDiscount,
    UpdateStock,
    InsertOrderLines,
    // Payment.
    PayWarehouse,
    PayDistrict,
    SelectWarehouse,
    SelectDistrict,
    LockCustomer,
    SelectCustomerData,
    PayCustomer,
    PayBadCustomer,
    InsertHistory,
    // Payment and Order-Status.
    SelectByLastName,
    // Order-Status.
    SelectCustomer,
    SelectLastOrder,
    SelectOrderLines,
    // Delivery.
    LockOldestNewOrder,
    DeleteNewOrder,
    SetCarrier,
    LockCustomerOfOrder,
    SetDeliveryDate,
    SumOrderLines,
    CreditCustomer,
    // Stock-Level.
    SelectNextOrder,
    CountLowStock,
    // All.
    Commit,
    Rollback,
}

use Statement::*;

/// Lines of an order: at most 15; at least 5, or 4 where the last one asks for an item that is not there.
pub(super) const MOST_LINES: usize = 15;
pub(super) const FEWEST_LINES: usize = 4;

impl Statement {
    /// All of them, in the order of their numbers.
    pub(super) const ALL: [Statement; 34] = [
        LockDistrict,
        CountOrder,
        InsertOrder,
        InsertNewOrder,
        LockStockOfOne,
        LockStock,
        SelectItems,
        SelectTaxAndDiscount,
        UpdateStock,
        InsertOrderLines,
        PayWarehouse,
        PayDistrict,
        SelectWarehouse,
        SelectDistrict,
        LockCustomer,
        SelectCustomerData,
        PayCustomer,
        PayBadCustomer,
        InsertHistory,
        SelectByLastName,
        SelectCustomer,
        SelectLastOrder,
        SelectOrderLines,
        LockOldestNewOrder,
        DeleteNewOrder,
        SetCarrier,
        LockCustomerOfOrder,
        SetDeliveryDate,
        SumOrderLines,
        CreditCustomer,
        SelectNextOrder,
        CountLowStock,
        Commit,
        Rollback,
    ];

    /// Its name, for counting errors.
    pub(super) fn name(self) -> &'static str {
        match self {
            LockDistrict => "new_order.lock_district",
            CountOrder => "new_order.count_order",
            InsertOrder => "new_order.insert_order",
            InsertNewOrder => "new_order.insert_new_order",
            LockStockOfOne => "new_order.lock_stock_of_one",
            LockStock => "new_order.lock_stock",
            SelectItems => "new_order.select_items",
            SelectTaxAndDiscount => "new_order.select_tax_and_discount",
            UpdateStock => "new_order.update_stock",
            InsertOrderLines => "new_order.insert_order_lines",
            PayWarehouse => "payment.pay_warehouse",
            PayDistrict => "payment.pay_district",
            SelectWarehouse => "payment.select_warehouse",
            SelectDistrict => "payment.select_district",
            LockCustomer => "payment.lock_customer",
            SelectCustomerData => "payment.select_customer_data",
            PayCustomer => "payment.pay_customer",
            PayBadCustomer => "payment.pay_bad_customer",
            InsertHistory => "payment.insert_history",
            SelectByLastName => "select_by_last_name",
            SelectCustomer => "order_status.select_customer",
            SelectLastOrder => "order_status.select_last_order",
            SelectOrderLines => "order_status.select_order_lines",
            LockOldestNewOrder => "delivery.lock_oldest_new_order",
            DeleteNewOrder => "delivery.delete_new_order",
            SetCarrier => "delivery.set_carrier",
            LockCustomerOfOrder => "delivery.lock_customer_of_order",
            SetDeliveryDate => "delivery.set_delivery_date",
            SumOrderLines => "delivery.sum_order_lines",
            CreditCustomer => "delivery.credit_customer",
            SelectNextOrder => "stock_level.select_next_order",
            CountLowStock => "stock_level.count_low_stock",
            Commit => "commit",
            Rollback => "rollback",
        }
    }

    /// Whether it goes as text: MySQL cannot prepare ROLLBACK, and neither has a value.
    pub(super) fn is_text(self) -> bool {
        matches!(self, Commit | Rollback)
    }

    /// Its text, with `lines` rows of values where it inserts the lines of an order.
    pub(super) fn sql(self, lines: usize) -> String {
        const FIFTEEN: &str = "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";
        // The one column of the order's district (S_DIST_xx), chosen by a value: ten statements less to prepare.
        const STOCK: &str = "SELECT s_i_id, s_quantity, ELT(?, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, \
                             s_dist_06, s_dist_07, s_dist_08, s_dist_09, s_dist_10), s_data FROM stock WHERE s_w_id = ? AND s_i_id";
        match self {
            LockDistrict => "SELECT d_tax, d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE",
            CountOrder => "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ?",
            InsertOrder => {
                "INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
                 VALUES (?, ?, ?, ?, NOW(), ?, ?)"
            }
            InsertNewOrder => "INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (?, ?, ?)",
            LockStockOfOne => return format!("{STOCK} = ? FOR UPDATE"),
            LockStock => return format!("{STOCK} IN {FIFTEEN} FOR UPDATE"),
            SelectItems => return format!("SELECT i_id, i_price, i_name, i_data FROM item WHERE i_id IN {FIFTEEN}"),
            SelectTaxAndDiscount => {
                "SELECT w_tax, c_discount, c_last, c_credit FROM warehouse, customer \
                 WHERE w_id = ? AND c_w_id = w_id AND c_d_id = ? AND c_id = ?"
            }
            UpdateStock => {
                "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, \
                 s_remote_cnt = s_remote_cnt + ? WHERE s_w_id = ? AND s_i_id = ?"
            }
            InsertOrderLines => {
                let mut sql = String::from(
                    "INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, \
                     ol_amount, ol_dist_info) VALUES (?,?,?,?,?,?,?,?,?)",
                );
                (1..lines).for_each(|_| sql.push_str(",(?,?,?,?,?,?,?,?,?)"));
                return sql;
            }
            PayWarehouse => "UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?",
            PayDistrict => "UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?",
            SelectWarehouse => {
                "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse WHERE w_id = ?"
            }
            SelectDistrict => {
                "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district WHERE d_w_id = ? AND d_id = ?"
            }
            LockCustomer => {
                "SELECT c_credit, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, \
                 c_credit_lim, c_discount, c_balance FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE"
            }
            SelectCustomerData => "SELECT c_data FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            PayCustomer => {
                "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, \
                 c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
            }
            PayBadCustomer => {
                "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, \
                 c_payment_cnt = c_payment_cnt + 1, c_data = LEFT(CONCAT(?, c_data), 500) \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
            }
            InsertHistory => {
                "INSERT INTO history (h_c_w_id, h_c_d_id, h_c_id, h_w_id, h_d_id, h_date, h_amount, h_data) \
                 VALUES (?, ?, ?, ?, ?, NOW(), ?, ?)"
            }
            SelectByLastName => {
                "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first"
            }
            SelectCustomer => {
                "SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
            }
            SelectLastOrder => {
                "SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? \
                 ORDER BY o_id DESC LIMIT 1"
            }
            SelectOrderLines => {
                "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
                 WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?"
            }
            LockOldestNewOrder => {
                "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? ORDER BY no_o_id LIMIT 1 FOR UPDATE"
            }
            DeleteNewOrder => "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?",
            SetCarrier => "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?",
            LockCustomerOfOrder => {
                "SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ? FOR UPDATE"
            }
            SetDeliveryDate => {
                "UPDATE order_line SET ol_delivery_d = NOW() WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?"
            }
            SumOrderLines => {
                "SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ? FOR UPDATE"
            }
            CreditCustomer => {
                "UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
            }
            SelectNextOrder => "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?",
            CountLowStock => {
                "SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id >= ? \
                 AND ol_o_id < ? AND s_w_id = ? AND s_i_id = ol_i_id AND s_quantity < ?"
            }
            Commit => "COMMIT",
            Rollback => "ROLLBACK",
        }
        .to_owned()
    }

    /// Kinds of its parameters, in their order.
    pub(super) fn parameters(self, lines: usize) -> Vec<Parameter> {
        use Parameter::{Decimal, Int, ShortString};
        match self {
            Commit | Rollback => vec![],
            SelectWarehouse => vec![Int],
            LockDistrict | CountOrder | SelectDistrict | LockOldestNewOrder | SelectNextOrder => vec![Int; 2],
            InsertNewOrder | SelectTaxAndDiscount | LockCustomer | SelectCustomerData | SelectCustomer
            | SelectLastOrder | SelectOrderLines | DeleteNewOrder | LockCustomerOfOrder | SetDeliveryDate
            | SumOrderLines | LockStockOfOne => vec![Int; 3],
            SetCarrier => vec![Int; 4],
            UpdateStock => vec![Int; 5],
            InsertOrder | CountLowStock => vec![Int; 6],
            SelectItems => vec![Int; MOST_LINES],
            LockStock => vec![Int; 2 + MOST_LINES],
            InsertOrderLines => {
                let line = [Int, Int, Int, Int, Int, Int, Int, Decimal, ShortString];
                line.repeat(lines)
            }
            PayWarehouse => vec![Decimal, Int],
            PayDistrict => vec![Decimal, Int, Int],
            PayCustomer => vec![Decimal, Decimal, Int, Int, Int],
            PayBadCustomer => vec![Decimal, Decimal, ShortString, Int, Int, Int],
            InsertHistory => vec![Int, Int, Int, Int, Int, Decimal, ShortString],
            SelectByLastName => vec![Int, Int, ShortString],
            CreditCustomer => vec![Decimal, Int, Int, Int],
        }
    }

    /// Numbers of rows for which it is prepared apart.
    pub(super) fn sizes(self) -> std::ops::RangeInclusive<usize> {
        match self {
            InsertOrderLines => FEWEST_LINES..=MOST_LINES,
            _ => 1..=1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_numbered_and_have_a_parameter_for_every_question_mark() {
        for (number, statement) in Statement::ALL.into_iter().enumerate() {
            assert_eq!(statement as usize, number);
            for lines in statement.sizes() {
                let sql = statement.sql(lines);
                let marks = sql.matches('?').count();
                assert_eq!(marks, statement.parameters(lines).len(), "{sql}");
            }
        }
    }
}
