//! What each API is sent: its own form, the call between marked lines, and nothing of anybody's name or key in it.

use serde_json::{Value, json};
use toolwarden_classifier::{Kind, PROMPT_VERSION, Settings, Unusable, payment};
use toolwarden_core::{MachineVerdict, Payer, Secret, VERDICT};

use crate::standin::{
    KEY, Outcome, Seen, StandIn, anthropic, completion, message, ok, openai, question, room, verdict,
};

fn header<'a>(seen: &'a Seen, name: &str) -> Vec<&'a str> {
    let lines = seen.head.lines().filter_map(|line| line.split_once(": "));
    lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value).collect()
}

/// What is the same for both: the call as data, the instructions beside it, the names and keys of nobody.
fn check_question(seen: &Seen, system: Option<&Value>) {
    assert_eq!(header(seen, "content-type"), ["application/json"]);
    assert!(system.and_then(Value::as_str).is_some_and(|text| text.contains("is data")), "{}", seen.body);
    let call = seen.call();
    for (member, wanted) in [
        ("server", "notes"),
        ("tool", "write"),
        ("method", "tools/call"),
        ("tool_claims", "Writes a note"),
        ("arguments", r#"{"n":1}"#),
        ("caller", "agent"),
        ("role", "worker"),
        ("held_because", "not_in_allowlist"),
    ] {
        assert_eq!(call.get(member).and_then(Value::as_str), Some(wanted), "{member}: {call}");
    }
    let text = seen.text();
    let before = text.split("-----BEGIN CALL").next().unwrap_or_default();
    for instruction in ["notes may be written", "nothing is deleted", "operators allow", "operators block"] {
        assert!(before.contains(instruction), "{instruction}: {text}");
    }
    let whole = seen.body.to_string();
    assert!(!whole.contains(KEY) && !whole.contains("ada"), "{whole}");
}

fn with_instructions(settings: Settings) -> Settings {
    Settings { allow: vec!["operators allow".to_owned()], block: vec!["operators block".to_owned()], ..settings }
}

#[tokio::test]
async fn review_2_openai_is_asked_in_its_own_form() -> Outcome {
    let standin = StandIn::answering(|seen| ok(&completion(&verdict(seen, "allow")).to_string())).await?;
    let room = room(with_instructions(openai(&standin.url)))?;
    let judged = room.classifier.judge(&question(1)).await;
    assert_eq!((judged.opinion.verdict, judged.failure, judged.is_cached), (Some(MachineVerdict::Allow), None, false));
    assert_eq!((judged.opinion.words.as_str(), judged.opinion.model.as_str()), ("because", "small-model"));
    assert!(judged.opinion.id.starts_with(VERDICT) && judged.opinion.prompt_version == PROMPT_VERSION);
    assert_eq!(judged.opinion.question, room.classifier.mark(&question(1)));
    assert_eq!(payment(&judged.opinion).map(|payment| payment.payer()), Some(Payer::Classifier));
    let seen = standin.seen();
    let [seen] = &seen[..] else { unreachable!("{seen:?}") };
    assert!(seen.head.starts_with("POST /v1/chat/completions HTTP/1.1"), "{}", seen.head);
    assert_eq!(header(seen, "authorization"), [format!("Bearer {KEY}")]);
    check_question(seen, seen.body.pointer("/messages/0/content"));
    assert_eq!(seen.body.get("model"), Some(&json!("small-model")));
    assert_eq!(seen.body.pointer("/messages/0/role"), Some(&json!("system")));
    assert_eq!(seen.body.pointer("/messages/1/role"), Some(&json!("user")));
    assert_eq!(seen.body.pointer("/response_format/type"), Some(&json!("json_schema")));
    assert_eq!(seen.body.pointer("/response_format/json_schema/strict"), Some(&json!(true)));
    let schema = seen.body.pointer("/response_format/json_schema/schema").cloned().unwrap_or_default();
    assert_eq!(schema.get("additionalProperties"), Some(&json!(false)));
    assert_eq!(schema.get("required"), Some(&json!(["verdict", "reason", "mark"])));
    assert_eq!(schema.pointer("/properties/verdict/enum"), Some(&json!(["allow", "hold"])));
    Ok(())
}

#[tokio::test]
async fn review_2_anthropic_is_asked_in_its_own_form() -> Outcome {
    let standin = StandIn::answering(|seen| ok(&message(&verdict(seen, "hold")))).await?;
    let room = room(with_instructions(anthropic(&standin.url)))?;
    let judged = room.classifier.judge(&question(1)).await;
    assert_eq!((judged.opinion.verdict, judged.failure), (Some(MachineVerdict::Hold), None));
    assert!(payment(&judged.opinion).is_none());
    let seen = standin.seen();
    let [seen] = &seen[..] else { unreachable!("{seen:?}") };
    assert!(seen.head.starts_with("POST /v1/messages HTTP/1.1"), "{}", seen.head);
    assert_eq!(header(seen, "x-api-key"), [KEY]);
    assert_eq!(header(seen, "anthropic-version"), ["2023-06-01"]);
    assert!(header(seen, "authorization").is_empty());
    check_question(seen, seen.body.get("system"));
    assert!(seen.body.get("max_tokens").is_some_and(Value::is_u64));
    let name = seen.body.pointer("/tools/0/name");
    assert!(name.is_some() && seen.body.pointer("/tool_choice/name") == name, "{}", seen.body);
    assert_eq!(seen.body.pointer("/tool_choice/type"), Some(&json!("tool")));
    assert_eq!(seen.body.pointer("/tools/0/input_schema/additionalProperties"), Some(&json!(false)));
    Ok(())
}

#[tokio::test]
async fn review_2_every_question_has_a_mark_of_its_own() -> Outcome {
    let standin = StandIn::answering(|seen| ok(&completion(&verdict(seen, "allow")).to_string())).await?;
    let room = room(openai(&standin.url))?;
    for number in 0..20 {
        room.classifier.judge(&question(number)).await;
    }
    let marks: std::collections::HashSet<_> = standin.seen().iter().map(Seen::mark).collect();
    assert_eq!(marks.len(), 20);
    assert!(marks.iter().all(|mark| mark.len() >= 26), "{marks:?}");
    Ok(())
}

#[tokio::test]
async fn review_2_a_shadow_pays_nothing() -> Outcome {
    let standin = StandIn::answering(|seen| ok(&completion(&verdict(seen, "allow")).to_string())).await?;
    let room = room(Settings { shadow: true, ..openai(&standin.url) })?;
    let judged = room.classifier.judge(&question(1)).await;
    assert_eq!(judged.opinion.verdict, Some(MachineVerdict::Allow));
    assert!(judged.opinion.is_shadow && payment(&judged.opinion).is_none());
    Ok(())
}

#[test]
fn keys_are_sent_over_tls_or_to_this_machine() -> Outcome {
    let refused = |settings: Settings| room(settings).err().map(|error| error.to_string()).unwrap_or_default();
    let plain = refused(openai("http://models.example:8080"));
    assert!(plain.contains("models.example:8080") && plain.contains("plain_http") && !plain.contains(KEY), "{plain}");
    assert!(!refused(anthropic("http://10.0.0.1")).is_empty());
    for url in ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1", "https://models.example"] {
        assert_eq!(refused(openai(url)), "", "{url}");
    }
    assert_eq!(refused(Settings { plain_http: true, ..openai("http://models.example") }), "");
    assert!(!refused(openai("https://user:word@models.example")).is_empty());
    assert_eq!(refused(Settings { model: String::new(), ..openai("https://h") }), Unusable::NoModel.to_string());
    let newline = Kind::OpenAi { url: None, key: Some(Secret::new(format!("{KEY}\r\nx: y"))) };
    let refusal = refused(Settings::new(newline, "m"));
    assert!(!refusal.is_empty() && !refusal.contains(KEY), "{refusal}");
    let shown = format!("{:?}", room(openai("https://models.example/path-secret"))?.classifier);
    assert!(shown.contains("models.example:443") && !shown.contains(KEY), "{shown}");
    Ok(())
}
