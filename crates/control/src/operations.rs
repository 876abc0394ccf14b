//! Every operation, one file each.

pub mod admin_set;
pub mod admin_show;
pub mod allowlist_add;
mod allowlist_edit;
pub mod allowlist_remove;
pub mod allowlist_show;
pub mod approvals_answer;
pub mod approvals_approve;
pub mod approvals_deny;
pub mod approvals_link;
pub mod approvals_list;
pub mod approvals_show;
pub mod approvals_stats;
pub mod audit_export;
pub mod audit_query;
pub mod audit_stats;
pub mod audit_verify;
pub mod blocks_remove;
mod explain_again;
pub mod grants_issue;
pub mod grants_list;
pub mod grants_revoke;
pub mod modes_delete;
pub mod modes_set;
pub mod modes_suggest;
pub mod modes_template;
pub mod policy_confirm;
pub mod policy_diff;
pub mod policy_history;
pub mod policy_records;
pub mod policy_reload;
pub mod policy_rollback;
pub mod roles_list;
pub mod roles_set;
pub mod rules_add;
pub mod rules_remove;
pub mod servers_add;
pub mod servers_list;
pub mod servers_reload;
pub mod servers_remove;
pub mod servers_show;
pub mod servers_switch;
pub mod sessions_list;
pub mod sessions_mode;
pub mod settings_get;
pub mod settings_set;
pub mod status;
pub mod tokens_issue;
pub mod tokens_list;
pub mod tokens_revoke;
pub mod tokens_rotate;
pub mod tools_accept;
pub mod tools_list;
pub mod tools_set;
pub mod trust_add;
pub mod trust_list;
pub mod trust_remove;
pub mod vault_rotate_key;
pub mod vault_status;

pub use admin_set::AdminSet;
pub use admin_show::AdminShow;
pub use allowlist_add::AllowlistAdd;
pub use allowlist_remove::AllowlistRemove;
pub use allowlist_show::AllowlistShow;
pub use approvals_approve::ApprovalsApprove;
pub use approvals_deny::ApprovalsDeny;
pub use approvals_link::ApprovalsLink;
pub use approvals_list::ApprovalsList;
pub use approvals_show::ApprovalsShow;
pub use approvals_stats::ApprovalsStats;
pub use audit_export::AuditExport;
pub use audit_query::AuditQuery;
pub use audit_stats::AuditStats;
pub use audit_verify::AuditVerify;
pub use blocks_remove::BlocksRemove;
pub use grants_issue::GrantsIssue;
pub use grants_list::GrantsList;
pub use grants_revoke::GrantsRevoke;
pub use modes_delete::ModesDelete;
pub use modes_set::ModesSet;
pub use modes_suggest::ModesSuggest;
pub use modes_template::ModesTemplate;
pub use policy_confirm::PolicyConfirm;
pub use policy_diff::PolicyDiff;
pub use policy_history::PolicyHistory;
pub use policy_records::PolicyRecords;
pub use policy_reload::PolicyReload;
pub use policy_rollback::PolicyRollback;
pub use roles_list::RolesList;
pub use roles_set::RolesSet;
pub use rules_add::RulesAdd;
pub use rules_remove::RulesRemove;
pub use servers_add::ServersAdd;
pub use servers_list::ServersList;
pub use servers_reload::ServersReload;
pub use servers_remove::ServersRemove;
pub use servers_show::ServersShow;
pub use servers_switch::ServersSwitch;
pub use sessions_list::SessionsList;
pub use sessions_mode::SessionsMode;
pub use settings_get::SettingsGet;
pub use settings_set::SettingsSet;
pub use status::Status;
pub use tokens_issue::TokensIssue;
pub use tokens_list::TokensList;
pub use tokens_revoke::TokensRevoke;
pub use tokens_rotate::TokensRotate;
pub use tools_accept::ToolsAccept;
pub use tools_list::ToolsList;
pub use tools_set::ToolsSet;
pub use trust_add::TrustAdd;
pub use trust_list::TrustList;
pub use trust_remove::TrustRemove;
pub use vault_rotate_key::VaultRotateKey;
pub use vault_status::VaultStatus;

/// A request that says nothing.
#[derive(Debug, Clone, Copy, Default, serde::Serialize, serde::Deserialize)]
pub struct Nothing {}

/// One who does something with every operation.
pub trait Visitor {
    fn visit<O: crate::Operation>(&mut self);
}

/// Shows every operation to a visitor. What is not named here has no door.
pub fn all(visitor: &mut impl Visitor) {
    macro_rules! each {
        ($($operation:ident),* $(,)?) => { $(visitor.visit::<$operation>();)* };
    }
    each!(
        AdminSet,
        AdminShow,
        AllowlistAdd,
        AllowlistRemove,
        AllowlistShow,
        ApprovalsApprove,
        ApprovalsDeny,
        ApprovalsLink,
        ApprovalsList,
        ApprovalsShow,
        ApprovalsStats,
        AuditExport,
        AuditQuery,
        AuditStats,
        AuditVerify,
        BlocksRemove,
        GrantsIssue,
        GrantsList,
        GrantsRevoke,
        ModesDelete,
        ModesSet,
        ModesSuggest,
        ModesTemplate,
        PolicyConfirm,
        PolicyDiff,
        PolicyHistory,
        PolicyRecords,
        PolicyReload,
        PolicyRollback,
        RolesList,
        RolesSet,
        RulesAdd,
        RulesRemove,
        ServersAdd,
        ServersList,
        ServersReload,
        ServersRemove,
        ServersShow,
        ServersSwitch,
        SessionsList,
        SessionsMode,
        SettingsGet,
        SettingsSet,
        Status,
        TokensIssue,
        TokensList,
        TokensRevoke,
        TokensRotate,
        ToolsAccept,
        ToolsList,
        ToolsSet,
        TrustAdd,
        TrustList,
        TrustRemove,
        VaultRotateKey,
        VaultStatus,
    );
}
