//! What libraries make of bytes from elsewhere.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static READS_FOREIGN_BYTES: Cell<bool> = const { Cell::new(false) };
}

/// Lets a library read bytes that may be damaged or made for it; none where it panics. Some assert what such bytes break. That says
/// something of the bytes and is for the caller to say: nothing is printed, and the program goes on.
pub fn survive<T>(read: impl FnOnce() -> T) -> Option<T> {
    static SILENCE: Once = Once::new();
    SILENCE.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            if !READS_FOREIGN_BYTES.get() {
                usual(panic);
            }
        }));
    });
    let outer = READS_FOREIGN_BYTES.replace(true);
    let found = catch_unwind(AssertUnwindSafe(read)).ok();
    READS_FOREIGN_BYTES.set(outer);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_no_answer_and_others_stay_as_they_are() {
        assert_eq!(survive(|| 1), Some(1));
        assert_eq!(survive(|| -> u8 { panic!("not printed") }), None);
        let nested = survive(|| (survive(|| -> u8 { panic!("not printed") }), READS_FOREIGN_BYTES.get()));
        assert_eq!(nested, Some((None, true)));
        assert!(!READS_FOREIGN_BYTES.get());
        assert!(catch_unwind(|| panic!("printed as ever")).is_err());
    }
}
