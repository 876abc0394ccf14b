//! The Secret Service of a desktop session, over its bus: GNOME Keyring, KWallet, and others that speak it.
//!
//! Takes the bus' address; gives the keys kept under our attributes. Never unlocks, because that asks a
//! person, and never replaces an item, because that would be the end of what its key sealed.

use std::collections::HashMap;
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use zbus::{Connection, DynamicType, ObjectPath, OwnedObjectPath, OwnedVariant, Type, Variant, connection};

use super::{Candidates, OsKeyringError};
use crate::backend::Backend;
use crate::key_text::{self, KeyBytes};
use crate::source::Supplies;

const LIMIT: Duration = Duration::from_secs(3);

const SERVICE: &str = "org.freedesktop.secrets";
const ROOT: &str = "/org/freedesktop/secrets";
/// What stands for "no object".
const NO_OBJECT: &str = "/";
const LABEL: &str = "Toolwarden master key";
const ATTRIBUTES: [(&str, &str); 2] = [("application", "toolwarden"), ("content", "master key")];

/// The name a known keyring has beside the common one, and our word for it.
const KNOWN: [(&str, Backend); 4] = [
    ("org.gnome.keyring", Backend::GnomeLibsecret),
    ("org.kde.kwalletd5", Backend::Kwallet5),
    ("org.kde.kwalletd6", Backend::Kwallet6),
    ("org.kde.secretservicecompat", Backend::Kwallet6),
];

/// A secret on the wire: session, parameters, value, type of the content.
type Wired<'a> = (ObjectPath<'a>, Vec<u8>, Vec<u8>, String);
type OwnedWired = (OwnedObjectPath, Vec<u8>, Vec<u8>, String);

pub(super) fn read_or_create(supplies: &dyn Supplies, new: Option<&KeyBytes>) -> Result<Candidates, OsKeyringError> {
    ask_within(&address(supplies)?, new, LIMIT)
}

/// The session bus, where every desktop and systemd put it.
fn address(supplies: &dyn Supplies) -> Result<String, OsKeyringError> {
    let no_bus = |why: &str| OsKeyringError::NoBus { why: why.to_owned() };
    let text = |name| supplies.variable(name).map(|text| text.reveal_to_upstream().to_owned());
    let address = text("DBUS_SESSION_BUS_ADDRESS").filter(|address| !address.is_empty());
    let address = address.or_else(|| {
        let socket = Path::new(&text("XDG_RUNTIME_DIR")?).join("bus");
        socket.exists().then(|| format!("unix:path={}", socket.display()))
    });
    let address = address.ok_or_else(|| no_bus("DBUS_SESSION_BUS_ADDRESS is not set"))?;
    // The key crosses the bus as it is: a socket of this machine keeps it here, a network would not.
    if address.starts_with("unix:") { Ok(address) } else { Err(no_bus("its address is not a socket of this machine")) }
}

/// Asks on a thread with a runtime of its own, so that it can be called from inside another one, and so that
/// nothing goes on after the time is over.
fn ask_within(address: &str, new: Option<&KeyBytes>, limit: Duration) -> Result<Candidates, OsKeyringError> {
    let refused = |why: &str| OsKeyringError::Refused { why: why.to_owned() };
    let asking = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| refused(&error.to_string()))?;
        let answer = runtime.block_on(async { tokio::time::timeout(limit, ask(address, new)).await });
        runtime.shutdown_background();
        answer.unwrap_or(Err(OsKeyringError::NoAnswer { seconds: limit.as_secs() }))
    };
    thread::scope(|scope| scope.spawn(asking).join()).unwrap_or_else(|_| Err(refused("its answer cannot be read")))
}

async fn ask(address: &str, new: Option<&KeyBytes>) -> Result<Candidates, OsKeyringError> {
    let bus = Bus::connect(address).await?;
    let mut keys = bus.keys().await?;
    if let (true, Some(new)) = (keys.is_empty(), new) {
        bus.keep(new).await?;
        // Asked again, because another process may have kept one, too: the older one is everybody's.
        keys = bus.keys().await?;
    }
    Ok(Candidates { keys, backend: bus.backend().await })
}

struct Bus {
    connection: Connection,
    session: OwnedObjectPath,
}

impl Bus {
    async fn connect(address: &str) -> Result<Self, OsKeyringError> {
        let no_bus = |error: zbus::Error| OsKeyringError::NoBus { why: in_one_line(&error) };
        let connection = connection::Builder::address(address).build().await.map_err(no_bus)?;
        let nowhere = ObjectPath::try_from(NO_OBJECT).map_err(|error| in_words(&error))?;
        let mut bus = Self { connection, session: nowhere.into() };
        // Not the encrypted session: whoever can listen on the bus can ask for the secret as well.
        let (_, session): (OwnedVariant, _) =
            bus.call(ROOT, "Service", "OpenSession", &("plain", Variant::from(""))).await?;
        bus.session = session;
        Ok(bus)
    }

    async fn call<B, R>(&self, path: &str, interface: &str, method: &str, body: &B) -> Result<R, OsKeyringError>
    where
        B: Serialize + DynamicType,
        R: DeserializeOwned + Type,
    {
        let interface = format!("org.freedesktop.Secret.{interface}");
        let reply = self.connection.call_method(Some(SERVICE), path, Some(interface), method, body).await;
        reply.and_then(|reply| reply.body().deserialize()).map_err(|error| in_words(&error))
    }

    async fn property(&self, path: &str, interface: &str, name: &str) -> Result<OwnedVariant, OsKeyringError> {
        let body = (format!("org.freedesktop.Secret.{interface}"), name);
        let properties = Some("org.freedesktop.DBus.Properties");
        let reply = self.connection.call_method(Some(SERVICE), path, properties, "Get", &body).await;
        reply.and_then(|reply| reply.body().deserialize()).map_err(|error| in_words(&error))
    }

    /// Our keys, the oldest first; none where there is none.
    async fn keys(&self) -> Result<Vec<KeyBytes>, OsKeyringError> {
        let ours: HashMap<&str, &str> = ATTRIBUTES.into();
        let (open, locked): (Vec<OwnedObjectPath>, Vec<OwnedObjectPath>) =
            self.call(ROOT, "Service", "SearchItems", &(ours,)).await?;
        if open.is_empty() && !locked.is_empty() {
            return Err(OsKeyringError::Locked);
        }
        let mut found = Vec::with_capacity(open.len());
        for item in &open {
            let made = self.property(item, "Item", "Created").await?;
            let (_, _, value, _): OwnedWired = self.call(item, "Item", "GetSecret", &(&self.session,)).await?;
            let key = key_text::read(&zeroize::Zeroizing::new(value));
            found.extend(key.map(|key| (u64::try_from(made).unwrap_or(u64::MAX), item.len(), item.as_str(), key)));
        }
        if found.is_empty() && !open.is_empty() {
            return Err(OsKeyringError::Malformed);
        }
        // Within a second the numbers at the end of paths tell, which grow in length, too.
        found.sort_by(|left, right| (left.0, left.1, left.2).cmp(&(right.0, right.1, right.2)));
        Ok(found.into_iter().map(|(_, _, _, key)| key).collect())
    }

    /// Keeps a key in the default collection, as an item of its own.
    async fn keep(&self, key: &KeyBytes) -> Result<(), OsKeyringError> {
        let collection: OwnedObjectPath = self.call(ROOT, "Service", "ReadAlias", &("default",)).await?;
        if collection.as_str() == NO_OBJECT {
            return Err(OsKeyringError::NoCollection);
        }
        let locked = self.property(&collection, "Collection", "Locked").await?;
        if bool::try_from(locked).unwrap_or(true) {
            return Err(OsKeyringError::Locked);
        }
        let ours: HashMap<&str, &str> = ATTRIBUTES.into();
        let properties = HashMap::from([
            ("org.freedesktop.Secret.Item.Label", Variant::from(LABEL)),
            ("org.freedesktop.Secret.Item.Attributes", Variant::from(ours)),
        ]);
        let text = key_text::write(key).to_vec();
        let secret: Wired<'_> = (self.session.as_ref(), Vec::new(), text, "text/plain".to_owned());
        let (_, question): (OwnedObjectPath, OwnedObjectPath) =
            self.call(&collection, "Collection", "CreateItem", &(properties, secret, false)).await?;
        // It would ask a person first, and nobody may be there to answer.
        if question.as_str() == NO_OBJECT { Ok(()) } else { Err(OsKeyringError::Locked) }
    }

    /// Whose service it is: a known keyring has a name of its own on the same connection.
    async fn backend(&self) -> Backend {
        let Ok(owner) = self.owner(SERVICE).await else { return Backend::SecretService };
        for (name, backend) in KNOWN {
            if self.owner(name).await.is_ok_and(|found| found == owner) {
                return backend;
            }
        }
        Backend::SecretService
    }

    async fn owner(&self, name: &str) -> zbus::Result<String> {
        let bus = Some("org.freedesktop.DBus");
        let reply = self.connection.call_method(bus, "/org/freedesktop/DBus", bus, "GetNameOwner", &(name,)).await?;
        reply.body().deserialize()
    }
}

fn in_words(error: &zbus::Error) -> OsKeyringError {
    use zbus::fdo::Error as Common;
    let refused = || OsKeyringError::Refused { why: in_one_line(error) };
    match error {
        zbus::Error::FDO(common) => match **common {
            Common::ServiceUnknown(_)
            | Common::NameHasNoOwner(_)
            | Common::SpawnExecFailed(_)
            | Common::SpawnForkFailed(_)
            | Common::SpawnChildExited(_)
            | Common::SpawnChildSignaled(_)
            | Common::SpawnFailed(_)
            | Common::SpawnFailedToSetup(_)
            | Common::SpawnConfigInvalid(_)
            | Common::SpawnServiceNotFound(_) => OsKeyringError::NoService,
            // The bus itself gave up on it.
            Common::NoReply(_) | Common::TimedOut(_) | Common::Timeout(_) => {
                OsKeyringError::NoAnswer { seconds: LIMIT.as_secs() }
            }
            _ => refused(),
        },
        zbus::Error::MethodError(name, _, _) if name.as_str() == "org.freedesktop.Secret.Error.IsLocked" => {
            OsKeyringError::Locked
        }
        _ => refused(),
    }
}

/// Another program's words, which may hold anything.
fn in_one_line(error: &zbus::Error) -> String {
    toolwarden_core::name::shown(&error.to_string()).into_owned()
}

#[cfg(test)]
#[path = "secret_service_tests.rs"]
mod tests;
