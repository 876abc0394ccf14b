//! The desk: the HTTP face of the clerk, and the owner-only socket it is reached by.
//!
//! Every request carries who is at the other end (`Peer`), put there by the door it came through; a
//! request without one is refused, so a new door cannot forget to ask.

mod answering;
mod events;
mod page;
mod peer;
mod router;
mod socket;

pub use answering::Desk;
pub use events::EVENTS_PATH;
pub use page::{PAGE_PATH, Visitors};
pub use peer::Peer;
pub use socket::{ControlSocket, SOCKET_NAME, SocketError, serve_socket};
