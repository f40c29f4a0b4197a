//! What other languages and the rest of the program know of the words.

mod elsewhere;
mod typescript;
