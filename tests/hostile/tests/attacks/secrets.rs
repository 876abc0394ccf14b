//! What a client shows the gateway, and a server must not see; and the other way round.

use toolwarden_hostile::house::OPEN;
use toolwarden_hostile::{Ask, Given, Heard, House, Server, Tried, attacks, outcome};

attacks! {
    cookie_of_the_client: Headers, "A server hopes for the cookies of a browser that calls the gateway.";
    credential_of_the_client: Headers | Credentials, "A server hopes for the token a client shows the gateway.";
    headers_of_the_client: Headers, "A server hopes for headers that say who and where the client is.";
    session_of_the_client: Headers, "A server hopes for the session id of a client's conversation with the gateway.";
}

/// A request with something a server should never see.
async fn with_header(name: &str, value: &str) -> Tried {
    let server = Server::honest().await?;
    let house = House::build(&Given::new(&[OPEN, &server.table("notes")])).await?;
    let got = house.send(&Ask::call("/mcp/notes", "safe").with(name, value)).await?;
    let is_told =
        |heard: &Heard| heard.headers.values().any(|given| given.to_str().is_ok_and(|given| given.contains(value)));
    let told = server.heard().iter().any(is_told);
    let called = server.heard().iter().any(Heard::is_call);
    // A credential is refused before anything is sent; all else is sent without the header.
    outcome(told, !told && (called || got.status == 401), got)
}

async fn cookie_of_the_client() -> Tried {
    with_header("Cookie", "session=hunter2").await
}

async fn credential_of_the_client() -> Tried {
    with_header("Authorization", "Bearer hunter2").await
}

async fn headers_of_the_client() -> Tried {
    with_header("X-Forwarded-For", "203.0.113.77").await
}

async fn session_of_the_client() -> Tried {
    with_header("Mcp-Session-Id", "hunter2").await
}
