//! Which registers hold addresses of variables.

use super::image::Image;
use super::step::{Address, Convention, Flow, REGISTERS, Register, Sets, Step};

/// How far a pointer may move in one turn of a loop.
const LONGEST_STRIDE: u64 = 4096;

/// What a register holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    pub value: u64,
    /// Whether it is that very place. Otherwise something unknown was added: an element of an array.
    pub exact: bool,
}

/// The registers at one place of a function. Of a server's code millions of these are made, so they are small.
#[derive(Debug, Clone)]
pub(super) struct Registers {
    /// Those that are known, as bits.
    known: u32,
    /// Those of them that are exact.
    exact: u32,
    values: [u64; REGISTERS],
}

impl Registers {
    pub(super) fn unknown() -> Registers {
        Registers {
            known: 0,
            exact: 0,
            values: [0; REGISTERS],
        }
    }

    pub(super) fn get(&self, register: Register) -> Option<Known> {
        let value = *self.values.get(usize::from(register))?;
        let bit = 1 << register;
        (self.known & bit != 0).then_some(Known {
            value,
            exact: self.exact & bit != 0,
        })
    }

    fn put(&mut self, register: Register, known: Option<Known>) {
        let Some(place) = self.values.get_mut(usize::from(register)) else {
            return;
        };
        let bit = 1 << register;
        self.known &= !bit;
        self.exact &= !bit;
        if let Some(known) = known {
            *place = known.value;
            self.known |= bit;
            self.exact |= if known.exact { bit } else { 0 };
        }
    }

    fn forget(&mut self, registers: u32) {
        self.known &= !registers;
        self.exact &= !registers;
    }

    /// Where an address leads, if one of its parts is known.
    pub(super) fn resolve(&self, address: &Address, image: &Image<'_>) -> Option<Known> {
        let behind = |known: Known, exact: bool| Known {
            value: known.value.wrapping_add(address.displacement),
            exact: known.exact && exact,
        };
        match (address.base, address.index) {
            (None, None) => Some(Known {
                value: address.displacement,
                exact: true,
            }),
            (Some(base), None) if self.get(base).is_some() => self.get(base).map(|known| behind(known, true)),
            (base, index) => {
                let of_base = base.and_then(|base| self.get(base));
                let of_index = index.filter(|_| !address.scaled).and_then(|index| self.get(index));
                // Of two numbers that are known the one that can be an address is the base.
                let is_place = |known: &Known| image.is_writable(known.value.wrapping_add(address.displacement));
                of_base
                    .filter(is_place)
                    .or(of_index.filter(is_place))
                    .map(|known| behind(known, false))
                    .or_else(|| {
                        let as_number = image.is_fixed && image.is_writable(address.displacement);
                        as_number.then_some(Known {
                            value: address.displacement,
                            exact: false,
                        })
                    })
            }
        }
    }

    /// The register that an instruction sets, and what is known of it then.
    pub(super) fn set_by(&self, step: &Step, image: &Image<'_>) -> Option<(Register, Option<Known>)> {
        let known = match step.sets? {
            Sets::Address(to, address) => (to, self.resolve(&address, image)),
            Sets::Number(to, value) => (to, image.is_fixed.then_some(Known { value, exact: true })),
            Sets::Pointer(to, address) => {
                let place = self.resolve(&address, image).filter(|known| known.exact);
                let value = place.and_then(|known| image.pointer(known.value));
                (to, value.map(|value| Known { value, exact: true }))
            }
        };
        Some(known)
    }

    /// What an instruction makes of them.
    pub(super) fn step(&mut self, step: &Step, convention: &Convention, image: &Image<'_>) {
        let set = self.set_by(step, image);
        self.forget(step.changes);
        if let Some((to, known)) = set {
            self.put(to, known);
        }
        if let Flow::Calls(_) = step.flow {
            self.forget(convention.changed_by_calls);
        }
    }

    /// Keeps what holds on this way as well; whether that changes anything. On the way back to a loop's beginning a pointer
    /// that has moved on is one somewhere behind where it was.
    pub(super) fn meet(&mut self, other: &Registers, is_way_back: bool) -> bool {
        let mut changed = false;
        let mut rest = self.known;
        while rest != 0 {
            let register = rest.trailing_zeros() as Register;
            rest &= rest - 1;
            let mine = self.get(register);
            let Some(known) = mine else { continue };
            let met = match other.get(register) {
                Some(theirs) if theirs.value == known.value => Some(Known {
                    value: known.value,
                    exact: known.exact && theirs.exact,
                }),
                Some(theirs) if is_way_back && theirs.value.abs_diff(known.value) <= LONGEST_STRIDE => Some(Known {
                    value: known.value,
                    exact: false,
                }),
                _ => None,
            };
            if met != mine {
                self.put(register, met);
                changed = true;
            }
        }
        changed
    }
}
