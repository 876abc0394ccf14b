//! The words every room shares: names, calls, callers, decisions, reasons, digests and secrets.
//!
//! Data only. Nothing here decides, waits, reads a file or knows the time; the judge is in `policy`.

pub mod acting_token;
pub mod address;
pub mod approval;
pub mod audit;
pub mod beside_arguments;
pub mod call;
pub mod caller;
pub mod clock;
pub mod decision;
pub mod digest;
pub mod entry;
pub mod grant;
pub mod held_task;
pub mod json;
pub mod keyring;
pub mod name;
pub mod opinion;
pub mod origin;
pub mod outbound;
pub mod payment;
pub mod reason;
pub mod records;
pub mod secret;
pub mod shown_call;
pub mod stage;
pub mod token;
pub mod weak;

pub use acting_token::ActingToken;
pub use approval::{
    AnswerScope, ApprovalNeeds, ApprovalState, HeldAnswer, HeldCall, HeldCaller, SESSION_ANCHOR, TOKEN_ANCHOR,
};
pub use audit::{AuditRecord, RecordKind, Status, VerdictRecord};
pub use beside_arguments::{MemberBeside, beside_arguments};
pub use call::{BUILTIN_SERVER, CUSTOM_TOOLS_SERVER, Call, CallKind, Door, FETCH_TOOL, Operation, SHELL_TOOL};
pub use caller::{Caller, CallerKind, Context, Standing, TokenClaims};
pub use clock::Clock;
pub use decision::Decision;
pub use digest::{Digest, LEFT_OUT_OF_META};
pub use entry::{Entry, EntryFault, Side};
pub use grant::{Grant, GrantClaims, GrantedCall};
pub use held_task::{TaskQuestions, TaskStage};
pub use keyring::{Keyring, KeyringError, Life, Purpose};
pub use name::{NameFault, ToolIdentity};
pub use opinion::{Agreement, MachineVerdict, NO_VERDICT, Opinion, VERDICT};
pub use origin::{Layer, Origin, Sourced};
pub use outbound::{Content, Outbound};
pub use payment::{Payer, Payment};
pub use reason::Reason;
pub use records::{Record, Records};
pub use secret::Secret;
pub use shown_call::ShownCall;
pub use stage::Stage;
pub use token::{Bearer, Claims, NewToken, ShownToken, TOKEN_BYTES};
pub use weak::Weakness;
