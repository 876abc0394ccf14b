//! Tasks of the extension io.modelcontextprotocol/tasks: calls that go on after their answer.
//!
//! They belong to the server, not to a connection, and are kept as long as it runs.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::ErrorData;
use rmcp::model::{
    CreateTaskResult, DetailedTask, GetTaskResult, InputRequests, InputResponses, JsonObject, Task, TaskPayload,
    TaskStatus,
};
use rmcp::task_manager::current_timestamp;
use serde_json::Value;
use tokio::sync::Notify;

use crate::asked::{Asked, Reply};
use crate::jobs;
use crate::rounds::{check_answerable, from_json, signed};

/// How long tasks are kept at least, in milliseconds.
const KEPT: u64 = 3_600_000;
/// How often clients should look, in milliseconds.
const LOOK: u64 = 100;

/// All tasks, by id.
#[derive(Debug, Default)]
pub struct Tasks {
    all: Mutex<HashMap<String, Arc<Job>>>,
    count: AtomicU64,
}

/// One task.
#[derive(Debug)]
struct Job {
    state: Mutex<State>,
    /// Rings once all open questions are answered.
    answered: Notify,
    cancelled: Notify,
}

#[derive(Debug)]
struct State {
    task: Task,
    payload: TaskPayload,
    /// Answers to questions of the current round.
    answers: InputResponses,
}

impl Tasks {
    /// Lets a call go on as a task, which is known before this returns.
    pub fn begin(&self, asked: Asked) -> CreateTaskResult {
        // Another server, or this one started again, has other ids.
        let id = format!("task-{}-{}", std::process::id(), self.count.fetch_add(1, Ordering::Relaxed));
        let now = current_timestamp();
        let task = Task::new(id.clone(), TaskStatus::Working, now.clone(), now);
        let task = task.with_ttl_ms(KEPT).with_poll_interval_ms(LOOK);
        let state = State { task: task.clone(), payload: TaskPayload::Working, answers: InputResponses::new() };
        let job = Job { state: Mutex::new(state), answered: Notify::new(), cancelled: Notify::new() };
        let job = Arc::new(job);
        lock(&self.all).insert(id, job.clone());
        tokio::spawn(async move { job.work(asked).await });
        CreateTaskResult::new(task)
    }

    pub fn get(&self, id: &str) -> Result<GetTaskResult, ErrorData> {
        let job = self.find(id)?;
        let state = lock(&job.state);
        Ok(GetTaskResult::new(DetailedTask::new(state.task.clone(), state.payload.clone())))
    }

    /// Takes answers to open questions; others are ignored.
    pub fn update(&self, id: &str, answers: InputResponses) -> Result<(), ErrorData> {
        self.find(id)?.answer(answers);
        Ok(())
    }

    /// Stops a task that is not over yet.
    pub fn cancel(&self, id: &str) -> Result<(), ErrorData> {
        self.find(id)?.cancelled.notify_one();
        Ok(())
    }

    fn find(&self, id: &str) -> Result<Arc<Job>, ErrorData> {
        let found = lock(&self.all).get(id).cloned();
        found.ok_or_else(|| ErrorData::invalid_params(format!("Unknown task: {id}"), None))
    }
}

impl Job {
    /// Works until the task is over.
    async fn work(&self, asked: Asked) {
        let end = tokio::select! {
            end = self.run(asked) => match end {
                Ok(result) => TaskPayload::Completed { result },
                Err(error) => TaskPayload::Failed { error: object(&error) },
            },
            () = self.cancelled.notified() => TaskPayload::Cancelled,
        };
        self.set(&mut lock(&self.state), end);
    }

    async fn run(&self, mut asked: Asked) -> Result<JsonObject, ErrorData> {
        loop {
            let unknown = || Err(ErrorData::invalid_params(format!("Unknown tool: {}", asked.name), None));
            let (questions, state) = match jobs::run(&asked, jobs::FOLLOWED).await.unwrap_or_else(unknown)? {
                Reply::Done(result) => return from_json(signed(result)),
                Reply::Ask { questions, state } => (questions, state),
            };
            check_answerable(&asked, &questions)?;
            // The key of a question is not used twice in one task.
            if questions.keys().any(|question| asked.answers.contains_key(question)) {
                return Err(ErrorData::invalid_request("the client did not answer usefully", None));
            }
            let mut answers = self.ask(from_json(Value::Object(questions))?).await;
            asked.answers.append(&mut answers);
            asked.state = state;
        }
    }

    /// Shows questions until all of them are answered.
    async fn ask(&self, input_requests: InputRequests) -> InputResponses {
        self.set(&mut lock(&self.state), TaskPayload::InputRequired { input_requests });
        self.answered.notified().await;
        std::mem::take(&mut lock(&self.state).answers)
    }

    fn answer(&self, answers: InputResponses) {
        let mut state = lock(&self.state);
        let State { payload: TaskPayload::InputRequired { input_requests }, answers: given, .. } = &mut *state else {
            return;
        };
        given.extend(answers.into_iter().filter(|(question, _)| input_requests.remove(question).is_some()));
        if input_requests.is_empty() {
            self.set(&mut state, TaskPayload::Working);
            self.answered.notify_one();
        }
    }

    fn set(&self, state: &mut State, payload: TaskPayload) {
        state.task.last_updated_at = current_timestamp();
        state.payload = payload;
    }
}

fn object(error: &ErrorData) -> JsonObject {
    match serde_json::to_value(error) {
        Ok(Value::Object(fields)) => fields,
        _ => JsonObject::new(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
