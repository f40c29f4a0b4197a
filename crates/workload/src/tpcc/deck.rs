//! The deck of cards that decides which transaction comes next (clause 5.2.4.2).

use super::kind::TransactionKind;
use crate::random::ConnectionRng;
use std::fmt;
use std::str::FromStr;

/// How many cards of each kind a deck has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mix([u8; 5]);

/// Most cards of a kind: a deck is dealt whole, and one that takes longer than a measurement is no
/// mix.
const MOST_CARDS: u8 = 100;

impl Default for Mix {
    /// Clause 5.2.4.2: 23 cards, 10 of New-Order, 10 of Payment, and one of each other kind.
    fn default() -> Self {
        Mix([10, 10, 1, 1, 1])
    }
}

impl Mix {
    /// Cards of a kind.
    pub fn cards(&self, kind: TransactionKind) -> u32 {
        u32::from(self.0[kind as usize])
    }

    /// Cards in all.
    pub fn total(&self) -> u32 {
        self.0.iter().map(|&cards| u32::from(cards)).sum()
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e] = self.0;
        write!(f, "{a},{b},{c},{d},{e}")
    }
}

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wanted = || {
            format!(
                "'{text}' is not a mix\nfix: give five numbers up to {MOST_CARDS}: New-Order, Payment, Order-Status, \
                 Delivery, Stock-Level, such as 10,10,1,1,1"
            )
        };
        let cards: Result<Vec<u8>, _> = text.split(',').map(|part| part.trim().parse()).collect();
        let cards: [u8; 5] = cards.map_err(|_| wanted())?.try_into().map_err(|_| wanted())?;
        let dealt = cards.iter().any(|&n| n > 0) && cards.iter().all(|&n| n <= MOST_CARDS);
        dealt.then_some(Mix(cards)).ok_or_else(wanted)
    }
}

/// The cards of one terminal: dealt one after the other, and shuffled anew when none is left.
#[derive(Debug, Clone)]
pub(super) struct Deck {
    cards: Vec<TransactionKind>,
    dealt: usize,
}

impl Deck {
    pub(super) fn new(mix: Mix) -> Deck {
        let cards: Vec<TransactionKind> = TransactionKind::ALL
            .into_iter()
            .flat_map(|kind| std::iter::repeat_n(kind, mix.cards(kind) as usize))
            .collect();
        Deck {
            dealt: cards.len(),
            cards,
        }
    }

    /// The next card.
    pub(super) fn deal(&mut self, rng: &mut ConnectionRng) -> TransactionKind {
        if self.dealt == self.cards.len() {
            self.dealt = 0;
            // Fisher and Yates.
            for i in (1..self.cards.len()).rev() {
                self.cards.swap(i, rng.uniform(0, i as u32) as usize);
            }
        }
        self.dealt += 1;
        self.cards[self.dealt - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_deck_holds_the_mix_exactly_and_no_two_are_dealt_alike() {
        let mix = Mix::default();
        let (mut deck, mut rng) = (Deck::new(mix), ConnectionRng::new(3, 0));
        let mut dealt = || -> Vec<TransactionKind> { (0..mix.total()).map(|_| deck.deal(&mut rng)).collect() };
        let (first, second) = (dealt(), dealt());
        for cards in [&first, &second] {
            for kind in TransactionKind::ALL {
                let count = cards.iter().filter(|&&card| card == kind).count();
                assert_eq!(count as u32, mix.cards(kind), "{kind}");
            }
        }
        assert_ne!(first, second);
    }

    #[test]
    fn a_mix_is_five_numbers_of_which_one_is_not_nothing() {
        assert_eq!(
            "45, 43,4,4,4".parse::<Mix>().map(|mix| mix.to_string()).as_deref(),
            Ok("45,43,4,4,4")
        );
        for wrong in ["1,2,3,4", "0,0,0,0,0", "1,1,1,1,x", "101,0,0,0,0", "-1,1,1,1,1"] {
            assert!(wrong.parse::<Mix>().is_err(), "{wrong}");
        }
    }
}
