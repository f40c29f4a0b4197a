//! Fetching servers from archives that the tests make up and serve.

mod fetching;
