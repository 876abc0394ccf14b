//! Who calls where callers bear tokens: agents, a person, and a person whose client is trusted with their answers.

use toolwarden_core::token::{Bearer, Claims, NewToken, TOKEN_BYTES};
use toolwarden_core::{AnswerScope, Clock, HeldAnswer};
use toolwarden_store::State;
use toolwarden_store::state::{Author, Moved};

use crate::house::Noon;
use crate::{Ask, Fault, House};

/// The number is the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    Agent = 1,
    /// Of the same user, in the same role.
    OtherAgent,
    Person,
    Trusted,
}

const ALL: [Who; 4] = [Who::Agent, Who::OtherAgent, Who::Person, Who::Trusted];

impl Who {
    fn token(self) -> NewToken {
        NewToken::of_random(&[self as u8; TOKEN_BYTES])
    }

    fn claims(self) -> Claims {
        let user = Some("ada".to_owned());
        let context = Some("one".to_owned());
        match self {
            Self::Agent | Self::OtherAgent => Claims {
                role: Some("pm".to_owned()),
                user,
                task: context.clone(),
                job: context,
                ..Claims::of(Bearer::Agent)
            },
            Self::Person => Claims { user, ..Claims::of(Bearer::Person) },
            Self::Trusted => Claims { user, may_answer: true, ..Claims::of(Bearer::Person) },
        }
    }

    /// The id of their token.
    #[must_use]
    pub fn id(self) -> String {
        self.token().id
    }

    /// A request of theirs.
    #[must_use]
    pub fn asks(self, ask: Ask) -> Ask {
        ask.with("Authorization", &format!("Bearer {}", self.token().text.reveal_to_upstream()))
    }
}

/// Issues the tokens of everybody.
///
/// # Errors
/// The store cannot be written.
pub async fn issue(state: &State) -> Result<(), Fault> {
    let author = Author { user: "ada".to_owned(), door: "cli".to_owned(), time: Noon.now() };
    for who in ALL {
        let token = who.token();
        state.issue_token(&author, &token.id, token.digest, &who.claims()).await?;
    }
    Ok(())
}

/// What a person says.
#[must_use]
pub fn answer(is_approval: bool) -> HeldAnswer {
    HeldAnswer {
        is_approval,
        by: "bob".to_owned(),
        groups: Vec::new(),
        door: "cli".to_owned(),
        at: Noon.now(),
        scope: AnswerScope::Once,
        note: None,
        token: None,
    }
}

impl House {
    /// A person answers a held call.
    ///
    /// # Errors
    /// It is not held, or nothing is kept here.
    pub async fn answers(&self, id: &str, is_approval: bool) -> Result<(), Fault> {
        self.answers_with(id, &answer(is_approval)).await
    }

    /// The same with this answer.
    ///
    /// # Errors
    /// It is not held, or nothing is kept here.
    pub async fn answers_with(&self, id: &str, said: &HeldAnswer) -> Result<(), Fault> {
        let until = Noon.now().checked_add(std::time::Duration::from_secs(60))?;
        let state = self.state.as_ref().ok_or("nothing is kept here")?;
        match state.answer_approval(id, said, until).await? {
            Moved::Done(_) => Ok(()),
            other => Err(format!("{id} cannot be answered: {other:?}").into()),
        }
    }
}
