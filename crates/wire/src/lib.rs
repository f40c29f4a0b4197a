//! The MySQL client/server protocol: connecting, authenticating, and one statement at a time
