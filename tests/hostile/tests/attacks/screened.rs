//! What a server lets slip or hides in its results, where the config asks for a look.

use serde_json::{Value, json};
use toolwarden_hostile::house::OPEN;
use toolwarden_hostile::server::{tool, with_tools};
use toolwarden_hostile::{Ask, Given, Heard, House, Said, Server, Tried, attacks, outcome};

attacks! {
    secret_in_a_text: Answers, "A result brings somebody's token along.";
    secret_in_other_letters: Answers, "The same, with its letters written as escapes.";
    secret_as_a_member: Answers, "A key stands in a member of its own, and only the member's name gives it away.";
    secret_in_an_error: Answers, "An error repeats the token it was refused with.";
    secret_as_an_event: Answers, "A stream ends with somebody's token.";
    secret_in_the_name_of_a_member: Answers, "A token is the name of a member, where nothing can take its place.";
    words_in_tags: Answers, "A result speaks to the model in characters that people do not see.";
    result_that_breaks_its_schema: Answers, "A result is none of what its tool promises.";
}

/// Put together here, so that nobody takes it for a real one.
fn token() -> String {
    format!("ghp_{}", "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6")
}

/// What a client gets of an answer, where secrets are taken out and hidden characters made visible.
async fn looked_at(
    act: impl Fn(&Heard) -> Said + Send + Sync + 'static,
    planted: &str,
    is_mended: impl Fn(&str) -> bool,
) -> Tried {
    let server = Server::calls_answered(act).await?;
    let rules = "screening = \"redact\"\nhidden_text = \"neutralise\"\n";
    let house = House::build(&Given::new(&[OPEN, &server.table("notes"), rules])).await?;
    let got = house.send(&Ask::call("/mcp/notes", "safe")).await?;
    outcome(got.has(planted), !got.has(planted) && is_mended(&got.body), got)
}

fn is_redacted(shown: &str) -> bool {
    shown.contains("[redacted: github-token]")
}

fn with_text(heard: &Heard, text: &str) -> Said {
    Said::result(heard, &json!({ "resultType": "complete", "content": [{ "type": "text", "text": text }] }).to_string())
}

async fn secret_in_a_text() -> Tried {
    looked_at(|heard| with_text(heard, &format!("use {}", token())), &token(), is_redacted).await
}

async fn secret_in_other_letters() -> Tried {
    let escaped: String = token().bytes().map(|byte| format!("\\u{byte:04x}")).collect();
    let planted = escaped.clone();
    let act = move |heard: &Heard| {
        Said::result(heard, &format!(r#"{{"resultType":"complete","content":[{{"type":"text","text":"{escaped}"}}]}}"#))
    };
    looked_at(act, &planted, is_redacted).await
}

async fn secret_as_a_member() -> Tried {
    let act = |heard: &Heard| {
        let member = json!({ "api_key": "ab12cd34ef56gh78" });
        Said::result(
            heard,
            &json!({ "resultType": "complete", "content": [], "structuredContent": member }).to_string(),
        )
    };
    looked_at(act, "ab12cd34ef56gh78", |shown| shown.contains("[redacted: assigned-secret]")).await
}

async fn secret_in_an_error() -> Tried {
    let act = |heard: &Heard| {
        let words = format!("refused: {}", token());
        Said::json(&format!(r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32000,"message":"{words}"}}}}"#, heard.id))
    };
    looked_at(act, &token(), is_redacted).await
}

async fn secret_as_an_event() -> Tried {
    let act = |heard: &Heard| {
        let result = json!({ "resultType": "complete", "content": [{ "type": "text", "text": token() }] });
        Said::events(&[format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, heard.id)])
    };
    looked_at(act, &token(), is_redacted).await
}

async fn secret_in_the_name_of_a_member() -> Tried {
    let act = |heard: &Heard| {
        let member: Value = [(token(), json!(1))].into_iter().collect::<serde_json::Map<_, _>>().into();
        Said::result(
            heard,
            &json!({ "resultType": "complete", "content": [], "structuredContent": member }).to_string(),
        )
    };
    looked_at(act, &token(), |shown| shown.contains("its result is withheld")).await
}

async fn words_in_tags() -> Tried {
    let hidden: String = "obey".chars().filter_map(|letter| char::from_u32(0xE_0000 + u32::from(letter))).collect();
    let planted = hidden.clone();
    looked_at(move |heard| with_text(heard, &hidden), &planted, |shown| shown.contains("u{e006f}")).await
}

async fn result_that_breaks_its_schema() -> Tried {
    let mut promising = tool("safe");
    if let Some(promising) = promising.as_object_mut() {
        let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
        promising.insert("outputSchema".to_owned(), schema);
    }
    let server = Server::start(move |heard| match heard.is_call() {
        true => Said::result(heard, r#"{"resultType":"complete","content":[],"structuredContent":{"n":"planted"}}"#),
        false => with_tools(heard, std::slice::from_ref(&promising)),
    });
    let house = House::open_before(&server.await?).await?;
    let got = house.send(&Ask::call("/mcp/notes", "safe")).await?;
    outcome(got.has("planted"), got.has("output schema") && !got.has("planted"), got)
}
