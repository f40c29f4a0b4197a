//! What a machine-code file says: unwind rules, symbols, functions, variables.
