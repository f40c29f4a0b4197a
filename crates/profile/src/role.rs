//! Whom a thread serves.

/// What a thread of the server is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// It serves a connection of the load: one of the N of the thread ledger.
    Connection,
    /// It serves another connection: ours, or an idle one.
    Control,
    /// It serves no connection: purge, page cleaner, log writer.
    Background,
}

impl Role {
    /// All roles.
    pub const ALL: [Role; 3] = [Role::Connection, Role::Control, Role::Background];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Role::Connection => "connection",
            Role::Control => "control",
            Role::Background => "background",
        }
    }
}
