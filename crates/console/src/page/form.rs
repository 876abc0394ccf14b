//! What the form of a page says. Only what a form of ours can say counts: anything else answers nothing.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use toolwarden_core::AnswerScope;
use url::form_urlencoded;

/// Longest text of a form that is read.
const LONGEST: usize = 16 * 1024;

/// How the value of a narrowed answer begins.
pub(super) const NARROWED: &str = "narrowed:";

/// Yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    Approve,
    Deny,
}

/// What a form brought.
#[derive(Debug, Default)]
pub(super) struct Form {
    pub(super) answer: Option<Said>,
    pub(super) scope: Option<AnswerScope>,
    /// What a narrowed answer asks for.
    pub(super) narrowed: Narrowed,
    pub(super) note: Option<String>,
    pub(super) mark: Option<String>,
    pub(super) token: Option<String>,
    pub(super) next: Option<String>,
    pub(super) login: Option<String>,
}

/// A narrowed answer, as the form that offered it says it back.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Narrowed {
    #[serde(rename = "where")]
    pub(super) conditions: Vec<String>,
    pub(super) free: Vec<String>,
}

/// It says what no form of ours says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Misread;

impl Form {
    pub(super) fn read(body: &[u8]) -> Result<Self, Misread> {
        let mut form = Self::default();
        let mut names = HashSet::new();
        for (name, value) in form_urlencoded::parse(body) {
            // Said twice, nobody knows which was meant; cut, a note would say something else.
            if !names.insert(name.clone().into_owned()) || value.len() > LONGEST {
                return Err(Misread);
            }
            let text = Some(value.clone().into_owned()).filter(|value| !value.is_empty());
            match &*name {
                "answer" => form.answer = Some(said(&value)?),
                "scope" => form.choose(&value)?,
                "note" => form.note = text,
                "mark" => form.mark = text,
                "token" => form.token = text,
                "next" => form.next = text,
                "login" => form.login = text,
                _ => return Err(Misread),
            }
        }
        Ok(form)
    }

    /// What an answer permits.
    fn choose(&mut self, text: &str) -> Result<(), Misread> {
        let scope = match text.strip_prefix(NARROWED) {
            Some(chosen) => {
                self.narrowed = serde_json::from_str(chosen).map_err(|_| Misread)?;
                AnswerScope::Narrowed
            }
            // Without what it is narrowed to, it says nothing.
            None => {
                let known = AnswerScope::ALL.into_iter().find(|scope| scope.as_str() == text);
                known.filter(|scope| *scope != AnswerScope::Narrowed).ok_or(Misread)?
            }
        };
        self.scope = Some(scope);
        Ok(())
    }
}

fn said(text: &str) -> Result<Said, Misread> {
    match text {
        "approve" => Ok(Said::Approve),
        "deny" => Ok(Said::Deny),
        _ => Err(Misread),
    }
}

#[cfg(test)]
mod tests {
    use toolwarden_core::AnswerScope;

    use super::{Form, Said};

    #[test]
    fn review_3_a_form_that_says_what_none_of_ours_says_answers_nothing() {
        let once = Form::read(b"mark=m&answer=deny&note=n&scope=once").unwrap_or_default();
        assert_eq!((once.mark.as_deref(), once.answer), (Some("m"), Some(Said::Deny)));
        let narrowed = Form::read(b"answer=approve&scope=narrowed:%7B%22where%22:[],%22free%22:[%22a%22]%7D");
        assert_eq!(narrowed.unwrap_or_default().scope, Some(AnswerScope::Narrowed));
        for body in [
            "mark=m&answer=deny&answer=approve",
            "mark=a&mark=b&answer=approve",
            "mark=m&answer=approve&%61nswer=deny",
            "mark=m&answer=yes",
            "mark=m&answer=",
            "mark=m&answer=approve&scope=bogus",
            "mark=m&answer=approve&scope=",
            "mark=m&answer=approve&scope=narrowed",
            "mark=m&answer=approve&scope=narrowed:x",
            "mark=m&answer=approve&Scope=once",
        ] {
            assert!(Form::read(body.as_bytes()).is_err(), "{body}");
        }
    }
}
