//! Every reason a decision can have: code, sentence, remedy, and who may pay for a hold (CORE-3).
//!
//! The codes are stable: audit, JSON-RPC data, CLI, console and docs all show these.

use crate::decision::Decision;
use crate::payment::Payer;

macro_rules! reasons {
    ($($variant:ident $code:literal $decision:ident [$($payer:ident)*] $sentence:literal $remedy:literal;)+) => {
        /// Why a call was allowed, held or denied.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason { $($variant,)+ }

        impl Reason {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The stable code.
            #[must_use]
            pub fn code(self) -> &'static str {
                match self { $(Self::$variant => $code,)+ }
            }

            /// What happened, in one sentence.
            #[must_use]
            pub fn sentence(self) -> &'static str {
                match self { $(Self::$variant => $sentence,)+ }
            }

            /// What a person can do about it; empty where there is nothing to do.
            #[must_use]
            pub fn remedy(self) -> &'static str {
                match self { $(Self::$variant => $remedy,)+ }
            }

            /// The decision this reason leads to.
            #[must_use]
            pub fn decision(self) -> Decision {
                match self { $(Self::$variant => Decision::$decision,)+ }
            }

            /// Everyone who may ever pay for this hold. Whether the sandbox or the classifier may at
            /// this moment depends on settings; `policy` takes those away, it never adds one.
            #[must_use]
            pub fn payers(self) -> &'static [Payer] {
                match self { $(Self::$variant => &[$(Payer::$payer,)*],)+ }
            }
        }
    };
}

reasons! {
    // Authorization: nobody can pay for these.
    NameAmbiguous "name_ambiguous" Deny [] "the name fits several known tools" "name the server and the tool exactly";
    NameReserved "name_reserved" Deny [] "the name is reserved" "upstream tools may not use `/`, and no server may be called `builtin` or `custom-user-tools`";
    CredentialExpired "credential_expired" Deny [] "the credential has expired" "issue a new token";
    CredentialExhausted "credential_exhausted" Deny [] "the credential has no calls left" "issue a new token";
    CredentialRevoked "credential_revoked" Deny [] "the credential was revoked" "issue a new token";
    CredentialUnverified "credential_unverified" Deny [] "the store cannot be reached, so nobody knows whether the credential still counts" "see that the database runs, then try again";
    RoleUnknown "role_unknown" Deny [] "no role has this name" "add `[roles.NAME]` to the config, or use a role that is there";
    ContextMissing "context_missing" Deny [] "the credential lacks context its role needs" "a sandbox role needs task and job, a pm role needs a user";
    ModeUnknown "mode_unknown" Deny [] "no mode has this slug" "see `toolwarden modes list`";
    ModeRefused "mode_refused" Deny [] "the mode is refused until its definition is repaired" "run `toolwarden modes validate`";
    ModeNotIssued "mode_not_issued" Deny [] "the credential was not issued for this mode" "use a mode of the token, or issue another token";
    ModeRequired "mode_required" Deny [] "a mode is required and none was given" "choose a mode, or set `default_mode`";
    MethodNotListed "method_not_listed" Deny [] "no table of methods lists this one" "list it under `[gateway] methods` if its server may have it";
    ForeignId "foreign_id" Deny [] "the id of a request, question or task is not the caller's own" "use the ids this client was given, in the session and mode it was given them";
    UnknownTool "unknown_tool" Deny [] "no such tool" "check the name against the server's list";
    ServerDisabled "server_disabled" Deny [] "the server is disabled" "enable it where it is configured";
    ServerConflict "server_conflict" Deny [] "two definitions of this server's name differ, so it is off until a person chooses" "remove or rename one of the definitions";
    PromptNotAccepted "prompt_not_accepted" Deny [] "the prompt is new or changed and nobody accepted it yet" "a person compares the definitions with `toolwarden tools diff`, which says how to accept the new one";
    ToolDisabled "tool_disabled" Deny [] "the tool is switched off" "an admin can switch it on";
    UserBlocked "user_blocked" Deny [] "the user blocked this tool" "`toolwarden unblock SERVER:TOOL` removes the block";
    DomainDenied "domain_denied" Deny [] "the admin denies this domain" "ask the admin";
    ModeGroup "mode_group" Deny [] "the mode lacks the tool group this call needs" "add the group to the mode";
    ModeServerOptIn "mode_server_opt_in" Deny [] "the server is off by default and no allowedServers of the mode names it" "add the server to the mode's allowedServers";
    ModeServer "mode_server" Deny [] "the mode does not permit this server" "change the mode's allowedServers or disallowedServers";
    ModeTool "mode_tool" Deny [] "the mode does not permit this tool" "change the mode's allowedTools or disallowedTools";
    ModeWindow "mode_window" Deny [] "the mode is outside its hours" "wait for the mode's hours, or change them";
    ModeCondition "mode_condition" Deny [] "the mode's conditions on the task context are not met" "use the mode in the context it is meant for";
    RoleDisallowed "role_disallowed" Deny [] "the role disallows this tool" "change the role's disallow list";
    RoleNotAllowed "role_not_allowed" Deny [] "no pattern of the role's allowlist matches this tool" "add a pattern to the role's allow list";
    RoleCondition "role_condition" Deny [] "the role permits this tool only under a condition that is not met" "configure the role's condition, or meet it";
    TaskToolMissing "task_tool_missing" Deny [] "the role permits this tool only where the token lists it among its task tools" "issue the token with this tool among its task tools";
    ScopeMissing "scope_missing" Deny [] "the tool has no scope, so it is closed to agents" "set `scope` for the tool in the config: `tools.\"NAME\" = { scope = \"sandbox\" }`, or `pm`, or `both`";
    ScopeMismatch "scope_mismatch" Deny [] "the tool's scope excludes this kind of agent" "change the tool's scope";
    SettingOff "setting_off" Deny [] "the tool depends on a setting that is off" "switch the setting on";
    TaskIdMissing "task_id_missing" Deny [] "the tool is task-scoped and the arguments lack an id it requires" "pass the id in the arguments";
    TaskIdMismatch "task_id_mismatch" Deny [] "an id in the arguments differs from the credential's" "use the id the credential was issued for";
    TaskUnbound "task_unbound" Deny [] "the tool is task-scoped and the credential is bound to no task" "issue a token for the task";
    RuleForbid "rule_forbid" Deny [] "a rule forbids this call" "change the rule";
    RuleNoPermit "rule_no_permit" Deny [] "no rule permits this call" "add a permit, or switch the shipped rules on";
    RuleError "rule_error" Deny [] "a rule could not be evaluated, so the call is denied" "repair the rule, or send arguments it can look at";
    CannotBeHeld "cannot_be_held" Deny [] "a person would have to answer this first, and prompts and completion cannot wait for one" "take the `ask` entry, the review or the rule with `@hold` off for prompts and completion of this server";
    SchemaViolation "schema_violation" Deny [] "the arguments break the tool's input schema" "correct the arguments";
    SchemaUnusable "schema_unusable" Deny [] "a schema of the tool cannot be used, so nobody can tell whether a call fits it" "have the server's author repair the schema; `toolwarden tools list` says what is wrong with it";
    RequestTooLarge "request_too_large" Deny [] "the request is larger than the limit" "send less, or raise the limit";
    RequestTooDeep "request_too_deep" Deny [] "the arguments are nested deeper than the limit" "flatten the arguments, or raise the limit";
    CallsPerMinute "calls_per_minute" Deny [] "more calls were made in a minute than the limit" "come back later, or raise `per_minute`";
    CallsUncounted "calls_uncounted" Deny [] "the calls of the last minute cannot be counted in the store, so the limit may be reached" "see that the database runs, then try again";
    CallsInFlight "calls_in_flight" Deny [] "as many calls are on their way as the limit, and none ended in time" "come back later, or raise `in_flight`";

    // Held before, and not asked again: a person's word, or a bound.
    Rejected "rejected" Deny [] "a person rejected this call" "change what is asked for, or ask the person";
    RejectedOften "rejected_often" Deny [] "calls of this tool were rejected three times within ten minutes, so nobody is asked for a while" "do something else, or talk to the person";
    OutcomeUnknown "outcome_unknown" Deny [] "the same call was approved and left, and nobody knows how it ended" "a person looks what it did, and can permit it once more with `toolwarden approvals approve`";
    AlreadyRunning "already_running" Deny [] "the same call was approved and is on its way" "wait for its answer";
    ApprovalUsed "approval_used" Deny [] "the approval of this call was used, or is over" "make the call again to ask for another";
    TooManyHeld "too_many_held" Deny [] "as many calls of this caller wait for an answer as may" "wait until some are answered";
    TooLargeToShow "too_large_to_show" Deny [] "the call is held, and too large for a person to look at" "send less";

    // How calls end that left: these stand beside an outcome.
    ResponseTooLarge "response_too_large" Deny [] "the server's answer is larger than the limit" "ask for less, or raise `response_bytes`";
    ResponseTooDeep "response_too_deep" Deny [] "the server's answer is nested deeper than the limit" "raise `depth`";
    TimeOver "time_over" Deny [] "the call took longer than the limit" "raise `time`";

    // Mandatory holds: no mode, allowlist or "always" answer lets these through.
    DefinitionChanged "definition_changed" Hold [Accept] "the tool's definition, or what its server says of itself, changed and nobody accepted it yet" "a person compares the definitions with `toolwarden tools diff`, which says how to accept the new one";
    DefinitionNew "definition_new" Hold [Accept] "the tool appeared after its server was first seen and nobody accepted it yet" "a person looks at it with `toolwarden tools diff`, which says how to accept it";
    SelfProtection "self_protection" Hold [Person] "the call would change Toolwarden itself" "a person decides";
    MandatoryAsk "mandatory_ask" Hold [Person] "an `ask` entry demands a person for this tool" "a person decides";
    HumanReview "human_review" Hold [Person] "the tool is marked `review = \"human\"`" "a person decides";
    ResultReview "result_review" Hold [Person] "the tool is marked `review = \"result\"`: the call was made, and its result waits for a person" "a person looks at the result";
    RuleHold "rule_hold" Hold [Person] "a rule demands a person for this call" "a person decides";
    LabelsUnknown "labels_unknown" Hold [Person] "which flow labels were met cannot be looked up in the store, and a rule depends on it" "see that the database runs, then make the call again";

    // Auto-run: held for want of a standing permission.
    InvalidName "invalid_name" Hold [Person] "the server's or tool's name is not valid, so no entry can match it" "have the server rename the tool";
    AutoRunDisabled "auto_run_disabled" Hold [Person] "the admin disabled auto-run" "a person decides each call";
    Protected "protected" Hold [Person] "a protection that is on covers this server" "a person decides, or the protection is switched off";
    NoUser "no_user" Hold [Person] "the credential has no user, so there is no auto-run state to use" "issue the token for a user";
    AskEveryTime "ask_every_time" Hold [Person] "auto-run is off: every call asks" "a person decides, or auto-run is switched on";
    AllowlistGateOff "allowlist_gate_off" Hold [Person] "allowlists are switched off and auto-run is off" "a person decides, or `mcp_allowlists` is switched on";
    NotInAllowlist "not_in_allowlist" Hold [Sandbox Classifier Person] "no allowlist entry matches" "a person decides, or an entry that matches is added with `toolwarden allow`";
    CommandUnparsable "command_unparsable" Hold [Person] "the command line cannot be parsed, or runs nothing" "a person decides";
    UrlUnparsable "url_unparsable" Hold [Person] "the URL cannot be parsed, or is not http or https" "a person decides";
    CommandBlocked "command_blocked" Hold [Person] "the admin's blocked list matches a command of this line" "a person decides";
    DeleteProtection "delete_protection" Hold [Person] "the command deletes files, or may, and delete protection is on" "a person decides";
    FetchReview "fetch_review" Hold [Classifier Person] "a fetch has no allowlist" "a person decides, or auto-review does";

    // Allowed.
    BrowserExempt "browser_exempt" Allow [] "a browser server whose protection is off" "";
    RunEverything "run_everything" Allow [] "auto-run is set to run everything" "";
    AllowlistMatch "allowlist_match" Allow [] "an allowlist entry matches" "";
    NarrowedMatch "narrowed_match" Allow [] "an allowlist entry for calls with such arguments matches" "";
    AdminRunEverything "admin_run_everything" Allow [] "the admin permits run everything and the caller uses it" "";
    GateOffAutoRun "gate_off_auto_run" Allow [] "allowlists are switched off and auto-run is on" "";
    NeverHeld "never_held" Allow [] "prompts and completion are never held" "";
    Paid "paid" Allow [] "held, and paid for" "";
}

#[cfg(test)]
#[path = "reason_tests.rs"]
mod tests;
