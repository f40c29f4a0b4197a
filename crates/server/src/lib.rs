//! The server under test: find, install a data folder, start, watch, stop
