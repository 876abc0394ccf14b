//! Every operation, one file each.

pub mod allowlist_add;
pub mod allowlist_remove;
pub mod allowlist_show;
pub mod audit_export;
pub mod audit_query;
pub mod audit_stats;
pub mod audit_verify;
mod explain_again;
pub mod policy_confirm;
pub mod servers_list;
pub mod servers_show;
pub mod status;
pub mod tokens_issue;
pub mod tokens_list;
pub mod tokens_revoke;
pub mod tokens_rotate;
pub mod tools_accept;
pub mod tools_list;
pub mod trust_add;
pub mod trust_list;
pub mod trust_remove;

pub use allowlist_add::AllowlistAdd;
pub use allowlist_remove::AllowlistRemove;
pub use allowlist_show::AllowlistShow;
pub use audit_export::AuditExport;
pub use audit_query::AuditQuery;
pub use audit_stats::AuditStats;
pub use audit_verify::AuditVerify;
pub use policy_confirm::PolicyConfirm;
pub use servers_list::ServersList;
pub use servers_show::ServersShow;
pub use status::Status;
pub use tokens_issue::TokensIssue;
pub use tokens_list::TokensList;
pub use tokens_revoke::TokensRevoke;
pub use tokens_rotate::TokensRotate;
pub use tools_accept::ToolsAccept;
pub use tools_list::ToolsList;
pub use trust_add::TrustAdd;
pub use trust_list::TrustList;
pub use trust_remove::TrustRemove;

/// A request that says nothing.
#[derive(Debug, Clone, Copy, Default, serde::Serialize, serde::Deserialize)]
pub struct Nothing {}
