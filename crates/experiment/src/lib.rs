//! What to run: ladders, repeats and order; drives the server, the load and the counters
