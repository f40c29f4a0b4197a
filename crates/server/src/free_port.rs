//! TCP ports of the loopback interface that are free.

use crate::error::Error;
use std::net::TcpListener;

/// A port that nobody else can draw as long as this is held. Another program may take it between then and the server's start; the
/// server then says so.
#[derive(Debug)]
pub(crate) struct FreePort {
    number: u16,
    _listener: TcpListener,
}

impl FreePort {
    /// One that is free now.
    pub(crate) fn draw() -> Result<FreePort, Error> {
        let failed = |error| Error::system("find a free port on", "127.0.0.1")(error);
        let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        let number = listener.local_addr().map_err(failed)?.port();
        Ok(FreePort {
            number,
            _listener: listener,
        })
    }

    /// Its number.
    pub(crate) fn number(&self) -> u16 {
        self.number
    }
}
