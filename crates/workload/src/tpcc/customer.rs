//! Who a transaction is about: customers by number or by last name, and other warehouses.

use super::nurand::RunConstants;
use super::outbox::Outbox;
use super::statement::Statement;
use super::text::last_name;
use crate::random::ConnectionRng;
use scaleprof_wire::BinaryRows;

/// How a user names a customer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CustomerChoice {
    /// By the number, 40 of 100 times.
    Number(u32),
    /// By the last name, of this number, 60 of 100 times.
    LastName(u32),
}

impl CustomerChoice {
    /// Clauses 2.5.1.2 and 2.6.1.2.
    pub(super) fn draw(rng: &mut ConnectionRng, constants: &RunConstants) -> CustomerChoice {
        match rng.uniform(1, 100) {
            1..=60 => CustomerChoice::LastName(constants.draw_last_name(rng)),
            _ => CustomerChoice::Number(constants.draw_customer(rng)),
        }
    }

    /// The number, where it is known; else asks for those of the customers of the name.
    pub(super) fn number_or_ask(self, warehouse: u32, district: u32, outbox: &mut Outbox<'_>) -> Option<u32> {
        match self {
            CustomerChoice::Number(number) => Some(number),
            CustomerChoice::LastName(name) => {
                let values = outbox.execute(Statement::SelectByLastName);
                values
                    .ints([warehouse, district])
                    .string(last_name(name).as_bytes())
                    .send();
                None
            }
        }
    }
}

/// The customer in the middle of those of a name, sorted by first name: at n/2 rounded up, from 1 (clauses 2.5.2.2 and
/// 2.6.2.2).
pub(super) fn middle_customer(rows: &mut BinaryRows<'_>) -> Option<u32> {
    let mut count = 0;
    let mut rest = rows.clone();
    while rest.next_row().is_some() {
        count += 1;
    }
    let mut number = None;
    for _ in 0..usize::div_ceil(count, 2) {
        number = Some(rows.next_row()?.int()?);
    }
    u32::try_from(number?).ok()
}

/// Any warehouse but this one; this one where it is the only one.
pub(super) fn other_warehouse(rng: &mut ConnectionRng, home: u32, warehouses: u32) -> u32 {
    if warehouses == 1 {
        return home;
    }
    let other = rng.uniform(1, warehouses - 1);
    other + u32::from(other >= home)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_warehouse_is_any_but_the_own() {
        let mut rng = ConnectionRng::new(1, 0);
        let mut seen = [0; 5];
        (0..1000).for_each(|_| seen[other_warehouse(&mut rng, 3, 4) as usize] += 1);
        assert_eq!((seen[0], seen[3]), (0, 0));
        assert!([1, 2, 4].iter().all(|&w| seen[w] > 250), "{seen:?}");
        assert_eq!(other_warehouse(&mut rng, 1, 1), 1);
    }

    /// A reply to SELECT c_id with these numbers.
    fn reply(numbers: &[u32]) -> Vec<u8> {
        let packet = |payload: &[u8]| [&[payload.len() as u8, 0, 0, 1], payload].concat();
        let mut out = packet(&[1]);
        out.extend(packet(
            b"\x03def\0\x01t\x01t\x01c\x01c\x0c\x3f\0\x0a\0\0\0\x03\0\0\0\0\0",
        ));
        for number in numbers {
            out.extend(packet(&[&[0, 0], &number.to_le_bytes()[..]].concat()));
        }
        out.extend(packet(&[0xfe, 0, 0, 2, 0, 0, 0]));
        out
    }

    #[test]
    fn of_the_customers_of_a_name_the_middle_one_is_taken() {
        let middle = |numbers: &[u32]| {
            let bytes = reply(numbers);
            middle_customer(&mut BinaryRows::new(&bytes, true).expect("a reply"))
        };
        assert_eq!(middle(&[]), None);
        assert_eq!(middle(&[7]), Some(7));
        assert_eq!(middle(&[7, 8]), Some(7));
        assert_eq!(middle(&[7, 8, 9]), Some(8));
        assert_eq!(middle(&[7, 8, 9, 10]), Some(8));
    }
}
