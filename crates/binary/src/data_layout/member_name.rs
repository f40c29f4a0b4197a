//! What a place in a variable is called.

use super::{DataLayout, Piece};

impl DataLayout {
    /// The variable that holds an address that threads share, with the member that the address lies in, such as
    /// `log_sys.mutex`; where no debug information tells members, with the offset: `log_sys+64`.
    ///
    /// A mutex or a condition variable is one thing, whichever of its words threads wait at: the members of the C and C++
    /// libraries' own types are left out.
    pub fn name_at(&self, address: u64) -> Option<String> {
        let (variable, piece) = self.piece_at(address)?;
        let path = public(&piece);
        let mut name = format!("{}{path}", variable.name);
        let offset = address - variable.address - piece.offset;
        if path.len() == piece.path.len() && offset > 0 {
            name.push_str(&format!("+{offset}"));
        }
        Some(name)
    }
}

/// The path up to the first name that C and C++ reserve for their implementation (C11 7.1.3, `__data`, `_M_mutex`).
fn public(piece: &Piece) -> &str {
    let is_reserved = |name: &str| {
        let mut letters = name.strip_prefix('_').unwrap_or_default().chars();
        letters
            .next()
            .is_some_and(|letter| letter == '_' || letter.is_ascii_uppercase())
    };
    let members = piece.path.match_indices('.');
    let reserved = members.map(|(at, _)| at).find(|at| is_reserved(&piece.path[at + 1..]));
    &piece.path[..reserved.unwrap_or(piece.path.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_the_librarys_own_types_are_left_out() {
        for (path, shown) in [
            ("", ""),
            (".mutex.__data.__lock", ".mutex"),
            (".m_cond.__data.__g_signals[1]", ".m_cond"),
            ("[3].lock._M_mutex.__data", "[3].lock"),
            (".__data.__lock", ""),
            (".table[2].rows_", ".table[2].rows_"),
            ("._private", "._private"),
        ] {
            let piece = Piece {
                path: path.to_owned(),
                offset: 0,
                size: 4,
            };
            assert_eq!(public(&piece), shown);
        }
    }
}
