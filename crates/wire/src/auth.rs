//! The handshake: the server's greeting, our answer, and the exchange that the account's plugin asks for.

use crate::packet::PacketStream;
use crate::reply::parse_error;
use crate::{Credentials, Endpoint, Error, Tls, TlsMode};
use mysql_common::auth::plugins::{AuthProc, ChallengeResponsePlugin, Context, Response};
use mysql_common::constants::CapabilityFlags;
use mysql_common::io::ParseBuf;
use mysql_common::packets::{AuthPlugin, AuthSwitchRequest, HandshakePacket, HandshakeResponse, SslRequest};
use mysql_common::proto::{MyDeserialize, MySerialize};
use scaleprof_guard::survive;

/// What the greeting told us.
#[derive(Debug, Clone)]
pub(crate) struct Greeting {
    pub(crate) server_version: String,
    pub(crate) connection_id: u32,
    pub(crate) capabilities: CapabilityFlags,
}

/// Capabilities that we ask for where the server has them.
fn wanted() -> CapabilityFlags {
    CapabilityFlags::CLIENT_LONG_PASSWORD
        | CapabilityFlags::CLIENT_LONG_FLAG
        | CapabilityFlags::CLIENT_PROTOCOL_41
        | CapabilityFlags::CLIENT_TRANSACTIONS
        | CapabilityFlags::CLIENT_SECURE_CONNECTION
        | CapabilityFlags::CLIENT_LOCAL_FILES
        | CapabilityFlags::CLIENT_MULTI_RESULTS
        | CapabilityFlags::CLIENT_PS_MULTI_RESULTS
        | CapabilityFlags::CLIENT_PLUGIN_AUTH
        | CapabilityFlags::CLIENT_DEPRECATE_EOF
}

struct Exchange<'a> {
    password: &'a [u8],
    scramble: &'a [u8],
    way: Way,
}

/// How the password travels.
#[derive(Clone, Copy)]
struct Way {
    is_socket: bool,
    is_encrypted: bool,
    /// Whether the server at the end of the encryption has shown who it is.
    is_verified: bool,
    /// Whether the bytes never leave this machine.
    is_local: bool,
}

impl Context for Exchange<'_> {
    fn pass(&self) -> &[u8] {
        self.password
    }
    fn is_ipc_transport(&self) -> bool {
        self.way.is_socket
    }
    fn is_tls_transport(&self) -> bool {
        self.way.is_encrypted
    }
    fn scramble(&self) -> &[u8] {
        self.scramble
    }
    fn server_key_pem(&self) -> Option<&[u8]> {
        None
    }
}

/// Carries out the handshake on a fresh connection, which may come back encrypted.
pub(crate) fn log_in(
    mut stream: PacketStream,
    endpoint: &Endpoint,
    who: &Credentials,
) -> Result<(PacketStream, Greeting), Error> {
    let impossible = |reason: String| Error::Authentication {
        user: who.user.clone(),
        reason,
    };

    let packet = stream.read_packet()?;
    if packet.first() == Some(&0xff) {
        return Err(refused(endpoint, who, &packet, false));
    }
    let hello = HandshakePacket::deserialize((), &mut ParseBuf(&packet))
        .map_err(|_| Error::Protocol("a greeting that cannot be read"))?;
    let mut greeting = Greeting {
        server_version: hello.server_version_str().into_owned(),
        connection_id: hello.connection_id(),
        capabilities: wanted() & hello.capabilities(),
    };
    if !greeting.capabilities.contains(CapabilityFlags::CLIENT_PROTOCOL_41) {
        return Err(Error::Protocol("a greeting of a server older than 4.1"));
    }

    if wants_encryption(&who.tls, endpoint, hello.capabilities())? {
        greeting.capabilities |= CapabilityFlags::CLIENT_SSL;
        // The server goes by the flags of the first packet that it gets.
        greeting.capabilities |= CapabilityFlags::CLIENT_PLUGIN_AUTH;
        greeting
            .capabilities
            .set(CapabilityFlags::CLIENT_CONNECT_WITH_DB, who.database.is_some());
        let mut request = Vec::new();
        SslRequest::new(greeting.capabilities, MAX_PACKET, UTF8MB4_GENERAL_CI).serialize(&mut request);
        stream.write_packet(&request)?;
        stream = stream.encrypt(&who.tls, endpoint)?;
    }
    let way = Way {
        is_socket: matches!(endpoint, Endpoint::Unix(_)),
        is_encrypted: stream.encryption().is_some(),
        is_verified: who.tls.verifies(),
        is_local: endpoint.is_local(),
    };

    let in_the_clear = hello.capabilities().contains(CapabilityFlags::CLIENT_SSL) && !way.is_encrypted;

    let password = who.password.as_ref().map_or(&b""[..], |p| p.as_bytes());
    // MariaDB sends an empty plugin name in some set-ups: the native method is then meant.
    let plugin = match hello.auth_plugin() {
        Some(AuthPlugin::Other(name)) if name.is_empty() => AuthPlugin::MysqlNativePassword,
        Some(plugin) => plugin.into_owned(),
        None => AuthPlugin::MysqlNativePassword,
    };
    // A plugin of the server's that we do not know may not be the account's: offer the native one and let it switch.
    let plugin = if AuthProc::init(&plugin).is_ok() && is_safe(&plugin, way) {
        plugin
    } else {
        AuthPlugin::MysqlNativePassword
    };
    let mut scramble = hello.nonce();
    let mut procedure = AuthProc::init(&plugin).map_err(|e| impossible(e.to_string()))?;
    let first = guarded(|| procedure.run(exchange(password, &scramble, way), &scramble))?
        .map_err(|e| impossible(e.to_string()))?;

    let response = HandshakeResponse::new(
        Some(first.data().unwrap_or_default()),
        guarded(|| hello.server_version_parsed())?.unwrap_or((5, 5, 5)),
        Some(who.user.as_bytes()),
        who.database.as_ref().map(|d| d.as_bytes()),
        Some(plugin),
        greeting.capabilities,
        None,
        MAX_PACKET,
    );
    let mut out = Vec::new();
    response.serialize(&mut out);
    stream.write_packet(&out)?;

    for _ in 0..MOST_STEPS {
        let packet = stream.read_packet()?;
        match packet.first() {
            Some(0x00) => return Ok((stream, greeting)),
            Some(0xff) => return Err(refused(endpoint, who, &packet, in_the_clear)),
            Some(0xfe) if packet.len() > 1 => {
                let switch = AuthSwitchRequest::deserialize((), &mut ParseBuf(&packet))
                    .map_err(|_| Error::Protocol("an authentication switch that cannot be read"))?;
                let plugin = switch.auth_plugin();
                if !is_safe(&plugin, way) {
                    return Err(impossible(match plugin {
                        AuthPlugin::Sha256Password => UNKNOWN_KEY.into(),
                        _ => "password not sent: the account requires it unencrypted over TCP\nfix: use the server's \
                              socket, --ssl-mode verify-ca, or an account with another plugin"
                            .into(),
                    }));
                }
                // Without the NUL that some plugins' data end with; a zero at the end of ed25519's is part of it.
                scramble = switch.plugin_data().to_vec();
                procedure = AuthProc::init(&plugin).map_err(|e| {
                    impossible(format!(
                        "{e}\nfix: use an account with mysql_native_password, caching_sha2_password or ed25519"
                    ))
                })?;
                answer(&mut stream, &mut procedure, &scramble, password, &scramble, way)
                    .map_err(|e| e.into_error(&impossible))?;
            }
            Some(0x01) if packet.get(1) == Some(&PERFORM_FULL_AUTHENTICATION) && !may_ask_for_key(way) => {
                return Err(impossible(UNKNOWN_KEY.into()));
            }
            Some(0x01) => answer(&mut stream, &mut procedure, &packet[1..], password, &scramble, way)
                .map_err(|e| e.into_error(&impossible))?,
            _ => return Err(Error::Protocol("an unknown step of the handshake")),
        }
    }
    Err(Error::Protocol("a handshake without end"))
}

/// Steps that a handshake may have after our first answer: a switch, a key, a password and its end are five.
const MOST_STEPS: usize = 16;

fn refused(endpoint: &Endpoint, who: &Credentials, packet: &[u8], in_the_clear: bool) -> Error {
    let error = Box::new(parse_error(packet));
    Error::Refused {
        endpoint: endpoint.clone(),
        user: who.user.clone(),
        // The server does not say what it is that it denies.
        may_want_encryption: in_the_clear && [ACCESS_DENIED, INSECURE_TRANSPORT].contains(&error.number),
        error,
    }
}

/// "Access denied for user", whatever is behind it.
const ACCESS_DENIED: u16 = 1045;
/// "Connections using insecure transport are prohibited".
const INSECURE_TRANSPORT: u16 = 3159;

/// Whether to ask for encryption before anything of ours is sent.
fn wants_encryption(tls: &Tls, endpoint: &Endpoint, offered: CapabilityFlags) -> Result<bool, Error> {
    match (tls.mode(), offered.contains(CapabilityFlags::CLIENT_SSL)) {
        (TlsMode::Disabled, _) | (TlsMode::Preferred, false) => Ok(false),
        (_, true) => Ok(true),
        (mode, false) => Err(Error::Tls {
            endpoint: endpoint.clone(),
            reason: format!(
                "the server offers no TLS, and --ssl-mode is {mode}\nfix: give the server a certificate (ssl_cert, \
                 ssl_key; SHOW VARIABLES LIKE '%ssl%'), or use --ssl-mode preferred"
            ),
        }),
    }
}

/// Collation that a request for encryption names; the answer to the greeting names it again.
const UTF8MB4_GENERAL_CI: u8 = 45;

/// Largest packet that we say we take; the server never sends one near it to us.
const MAX_PACKET: u32 = 1 << 30;

/// Whether a plugin keeps the password secret on this transport. caching_sha2_password does until the server wants more than a hash.
fn is_safe(plugin: &AuthPlugin<'_>, way: Way) -> bool {
    match plugin {
        AuthPlugin::MysqlClearPassword | AuthPlugin::MysqlOldPassword => way.is_socket || way.is_verified,
        AuthPlugin::Sha256Password => may_ask_for_key(way),
        _ => true,
    }
}

/// Why a password is not sent.
const UNKNOWN_KEY: &str = "password not sent: the RSA key of the server cannot be verified over unencrypted TCP\nfix: use --ssl-mode \
                           required or the server's socket";

/// caching_sha2_password's "perform full authentication": the server has no hash of the password in its cache.
const PERFORM_FULL_AUTHENTICATION: u8 = 4;

/// Whether the password may go to whoever sends a key (it goes as it is where the transport keeps it secret).
fn may_ask_for_key(way: Way) -> bool {
    way.is_local || way.is_socket || way.is_encrypted
}

fn exchange<'a>(password: &'a [u8], scramble: &'a [u8], way: Way) -> Exchange<'a> {
    Exchange {
        password,
        scramble,
        way,
    }
}

enum StepError {
    Plugin(String),
    Stream(Error),
}

impl StepError {
    fn into_error(self, impossible: &impl Fn(String) -> Error) -> Error {
        match self {
            StepError::Plugin(reason) => impossible(reason),
            StepError::Stream(e) => e,
        }
    }
}

/// What a library makes of a server's bytes. Some of them make it panic: an empty key, one that is shorter than its padding, digits that
/// are none. That says something of the server, and is no reason for us to end.
fn guarded<T>(read: impl FnOnce() -> T) -> Result<T, Error> {
    survive(read).ok_or(Error::Protocol("a step of the handshake that cannot be read"))
}

/// Answers one challenge.
fn answer(
    stream: &mut PacketStream,
    procedure: &mut AuthProc,
    challenge: &[u8],
    password: &[u8],
    scramble: &[u8],
    way: Way,
) -> Result<(), StepError> {
    let response = guarded(|| procedure.run(exchange(password, scramble, way), challenge))
        .map_err(StepError::Stream)?
        .map_err(|e| StepError::Plugin(e.to_string()))?;
    let (Response::Next { packet } | Response::Last { packet }) = response;
    match packet {
        Some(data) => stream.write_packet(&data).map_err(StepError::Stream),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_who_stands_between_is_given_a_password() {
        let far = Way {
            is_socket: false,
            is_encrypted: false,
            is_verified: false,
            is_local: false,
        };
        let encrypted = Way {
            is_encrypted: true,
            ..far
        };
        let verified = Way {
            is_verified: true,
            ..encrypted
        };
        let here = Way { is_local: true, ..far };
        let socket = Way {
            is_socket: true,
            ..here
        };
        let ways = [far, here, encrypted, verified, socket];
        let safe = |plugin: AuthPlugin<'_>| ways.map(|way| is_safe(&plugin, way));
        assert_eq!(safe(AuthPlugin::MysqlClearPassword), [false, false, false, true, true]);
        assert_eq!(safe(AuthPlugin::Sha256Password), [false, true, true, true, true]);
        assert_eq!(safe(AuthPlugin::CachingSha2Password), [true; 5]);
        assert_eq!(ways.map(may_ask_for_key), [false, true, true, true, true]);
    }
}
