//! The protocol's methods, each handed to the module that knows the answer.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CancelTaskParams, ClientCapabilities, CompleteRequestParams,
    CompleteResult, GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult, Implementation,
    InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    Reference, ServerConfig, SubscribeRequestParams, SubscriptionFilter, TASKS_EXTENSION_ID, Tool,
    UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::{ErrorData, ServerHandler};
use serde_json::{Value, json};
use tokio::sync::{Mutex, broadcast};

use crate::asked::{Asked, Outcome, Subject};
use crate::catalogue::{CHANGING_PROMPT, CHANGING_TOOL, Catalogue};
use crate::changes::{self, Change, Watched};
use crate::era::Era;
use crate::record::Record;
use crate::rounds::{self, Settled, from_json};
use crate::tasks::Tasks;
use crate::{jobs, library, tools};

/// What all sessions share.
#[derive(Debug)]
pub struct Shared {
    pub catalogue: Catalogue,
    pub record: Record,
    pub era: Era,
    pub sessions: Arc<LocalSessionManager>,
    pub news: broadcast::Sender<Change>,
    /// Streams whose client was or will be told that it listens, but which do not hear news yet.
    pub opening: AtomicUsize,
    pub with_tool: AtomicBool,
    pub with_prompt: AtomicBool,
    pub tasks: Tasks,
}

impl Shared {
    pub fn new(catalogue: Catalogue, record: Record, era: Era) -> Self {
        let sessions = Arc::new(LocalSessionManager::default());
        let news = broadcast::Sender::new(64);
        let (with_tool, with_prompt) = (AtomicBool::new(false), AtomicBool::new(false));
        let (opening, tasks) = (AtomicUsize::new(0), Tasks::default());
        Self { catalogue, record, era, sessions, news, opening, with_tool, with_prompt, tasks }
    }
}

/// One legacy session, or one modern request.
#[derive(Debug)]
pub struct Fixture {
    pub shared: Arc<Shared>,
    /// The least severe log level this session wants, by its place in the protocol's list.
    pub level: AtomicUsize,
    watched: Watched,
}

impl Fixture {
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared, level: AtomicUsize::new(0), watched: Arc::new(Mutex::new(HashSet::new())) }
    }

    /// The reply to one request or to its repetition with answers.
    pub async fn reply(&self, asked: &Asked, context: &RequestContext<RoleServer>) -> Outcome {
        match asked.subject {
            Subject::Tool => tools::call(self, asked, context).await,
            Subject::Prompt => library::prompt(asked),
            Subject::Resource => library::read(asked),
        }
    }

    /// Writes to the record; a record that cannot be written fails the call, for tests rely on it.
    pub fn note(&self, method: &str, name: &str) -> Result<(), ErrorData> {
        let noted = self.shared.record.note(method, name);
        noted.map_err(|error| ErrorData::internal_error(format!("cannot write the record: {error}"), None))
    }

    fn capabilities(context: &RequestContext<RoleServer>) -> Value {
        context.client_capabilities().and_then(|them| serde_json::to_value(them).ok()).unwrap_or_default()
    }
}

/// Lists are the same for everybody, and good for a minute; the legacy era has no words for it.
fn freshness(context: &RequestContext<RoleServer>) -> (Option<u64>, Option<CacheScope>) {
    if rounds::is_modern(context) { (Some(60_000), Some(CacheScope::Public)) } else { (None, None) }
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        // Tasks are an extension of the modern era.
        let extensions = if self.shared.era == Era::Legacy { Value::Null } else { json!({TASKS_EXTENSION_ID: {}}) };
        let capabilities = json!({
            "completions": {},
            "extensions": extensions,
            "logging": {},
            "prompts": {"listChanged": true},
            "resources": {"subscribe": true, "listChanged": true},
            "tools": {"listChanged": true},
        });
        let mut info = ServerConfig::new(serde_json::from_value(capabilities).unwrap_or_default());
        info.server_info = Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        info.with_instructions("A server for tests.")
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.shared.era.versions()
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let mut result = self.negotiate_initialize(&request)?;
        result.capabilities.extensions = None;
        Ok(result)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let more = self.shared.with_tool.load(Ordering::Relaxed);
        let tools = self.shared.catalogue.tools.iter().filter(|tool| more || tool.name != CHANGING_TOOL);
        let (ttl_ms, cache_scope) = freshness(&context);
        Ok(ListToolsResult { ttl_ms, cache_scope, ..ListToolsResult::with_all_items(tools.cloned().collect()) })
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.shared.catalogue.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.note("tools/call", &request.name)?;
        let asked = Asked {
            subject: Subject::Tool,
            name: request.name.into_owned(),
            arguments: request.arguments.unwrap_or_default(),
            answers: request.input_responses.unwrap_or_default(),
            state: request.request_state,
            capabilities: Self::capabilities(&context),
        };
        if rounds::is_modern(&context) {
            let knows_tasks = context.client_capabilities().is_some_and(|them| them.supports_tasks());
            if knows_tasks && jobs::becomes_task(&asked) {
                return Ok(self.shared.tasks.begin(asked).into());
            }
            if !knows_tasks && jobs::needs_task(&asked.name) {
                let required = ClientCapabilities::builder().enable_tasks().build();
                return Err(ErrorData::missing_required_client_capability(required));
            }
        }
        Ok(match rounds::settle(self, asked, &context).await? {
            Settled::Done(result) => CallToolResponse::Complete(from_json(result)?),
            Settled::Open(questions) => questions.into(),
        })
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.shared.tasks.get(&request.task_id)
    }

    async fn update_task(&self, request: UpdateTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.shared.tasks.update(&request.task_id, request.input_responses)
    }

    async fn cancel_task(&self, request: CancelTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.shared.tasks.cancel(&request.task_id)
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let more = self.shared.with_prompt.load(Ordering::Relaxed);
        let prompts = self.shared.catalogue.prompts.iter().filter(|prompt| more || prompt.name != CHANGING_PROMPT);
        let (ttl_ms, cache_scope) = freshness(&context);
        Ok(ListPromptsResult { ttl_ms, cache_scope, ..ListPromptsResult::with_all_items(prompts.cloned().collect()) })
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.note("prompts/get", &request.name)?;
        let asked = Asked {
            subject: Subject::Prompt,
            name: request.name,
            arguments: request.arguments.unwrap_or_default(),
            answers: request.input_responses.unwrap_or_default(),
            state: request.request_state,
            capabilities: Self::capabilities(&context),
        };
        Ok(match rounds::settle(self, asked, &context).await? {
            Settled::Done(result) => GetPromptResponse::Complete(from_json(result)?),
            Settled::Open(questions) => questions.into(),
        })
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let (ttl_ms, cache_scope) = freshness(&context);
        let resources = self.shared.catalogue.resources.clone();
        Ok(ListResourcesResult { ttl_ms, cache_scope, ..ListResourcesResult::with_all_items(resources) })
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let (ttl_ms, cache_scope) = freshness(&context);
        let templates = self.shared.catalogue.templates.clone();
        Ok(ListResourceTemplatesResult {
            ttl_ms,
            cache_scope,
            ..ListResourceTemplatesResult::with_all_items(templates)
        })
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.note("resources/read", &request.uri)?;
        let asked = Asked {
            subject: Subject::Resource,
            name: request.uri,
            arguments: Default::default(),
            answers: request.input_responses.unwrap_or_default(),
            state: request.request_state,
            capabilities: Self::capabilities(&context),
        };
        Ok(match rounds::settle(self, asked, &context).await? {
            Settled::Done(result) => ReadResourceResponse::Complete(from_json(result)?),
            Settled::Open(questions) => questions.into(),
        })
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let name = match &request.r#ref {
            Reference::Prompt(prompt) => prompt.name.as_str(),
            Reference::Resource(resource) => resource.uri.as_str(),
            _ => "",
        };
        self.note("completion/complete", name)?;
        from_json(rounds::complete(library::complete(&request.argument.value), &context))
    }

    #[expect(deprecated, reason = "logging is deprecated, and still has to be served")]
    async fn set_level(
        &self,
        request: rmcp::model::SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if rounds::is_modern(&context) {
            return Err(ErrorData::method_not_found::<rmcp::model::SetLevelRequestMethod>());
        }
        self.level.store(request.level as usize, Ordering::Relaxed);
        Ok(())
    }

    async fn subscribe(&self, request: SubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.watched.lock().await.insert(request.uri);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.watched.lock().await.remove(&request.uri);
        Ok(())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        tokio::spawn(changes::tell(context.peer, self.watched.clone(), self.shared.news.subscribe()));
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.shared.opening.fetch_add(1, Ordering::SeqCst);
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let news = self.shared.news.subscribe();
        // A stream that was late is not counted any more.
        let _ = self.shared.opening.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |count| count.checked_sub(1));
        changes::listen(context, news).await
    }
}
