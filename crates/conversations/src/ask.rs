//! What the gateway asks a server on its own account: pages of lists, and which era it speaks.

use std::sync::Arc;
use std::time::Duration;

use toolwarden_core::json::{Document, Limits, Part, Value};
use toolwarden_mcp::{Era, Id, Version, headers};
use toolwarden_policy::housekeeping;

use crate::failure::Failure;
use crate::upstreams::{Link, StdioLink, Upstream};
use crate::whole::{Reply, result_of};

/// Something the gateway asks on its own account: a page of a list, a discovery. `cursor` is raw JSON.
pub async fn ask(upstream: &Arc<Upstream>, link: &Link, method: &str, cursor: Option<&str>) -> Result<Part, Failure> {
    let era = link.era();
    let mut members: Vec<String> = cursor.map(|cursor| format!("\"cursor\":{cursor}")).into_iter().collect();
    if era == Era::Modern {
        members.push(format!(
            r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"{}","io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/clientInfo":{{"name":"toolwarden","version":"{}"}}}}"#,
            Version::LATEST_MODERN,
            env!("CARGO_PKG_VERSION")
        ));
    }
    let params = Document::parse(format!("{{{}}}", members.join(",")), Limits::DEFAULT);
    let params = params.map_err(|error| Failure::Protocol(format!("its cursor cannot be used: {error}")))?;
    let outbound = housekeeping(upstream.name.clone(), method, Some(Part::whole(Arc::new(params))));
    let outbound = outbound.map_err(|error| Failure::Protocol(error.to_string()))?;
    // Several may be on their way on one session, where ids must differ.
    let id = match link {
        Link::Http(http) => Id::from_raw(&format!("\"tw-list-{}\"", http.next_id().raw())),
        Link::Stdio(_) => None,
    };
    let id = id.unwrap_or_else(|| Id::number(0));
    let asking = async {
        let reply = match link {
            Link::Http(http) => {
                let mut mirrors = http::HeaderMap::new();
                if let (Era::Modern, Ok(name)) = (era, http::HeaderValue::from_str(method)) {
                    mirrors.insert(headers::METHOD, name);
                }
                Reply::Http(http.request(&outbound, &id, &[], Some(&mirrors), upstream.bounds().silence).await?)
            }
            Link::Stdio(stdio) => Reply::Stdio(stdio.request(&outbound, &id, &[]).await?),
        };
        let said = result_of(upstream, reply, &id).await;
        if let (Link::Http(http), Err(failure)) = (link, &said)
            && era == Era::Legacy
            && is_forgetful(failure)
        {
            // The next one is opened anew.
            http.forget();
        }
        said
    };
    tokio::time::timeout(upstream.bounds().silence, asking).await.map_err(|_| Failure::Timeout)?
}

/// Whether a legacy server does not know the session any more. What it never knew is another matter.
fn is_forgetful(failure: &Failure) -> bool {
    match failure {
        Failure::Answered { status: 404, .. } => !failure.is_unknown_method(),
        Failure::Wordless { status } => *status == 404,
        _ => false,
    }
}

/// The verdict on a child that did not answer, or ended.
pub const SAYS_NOTHING: &str = "revisions before 2026-07-28, as it seems";

/// How long a child may be silent when it is asked whether it speaks the modern revision: an older one
/// may take a request before `initialize` for noise.
const SILENCE: Duration = Duration::from_secs(10);

/// Makes sure that a child speaks the modern revision before any request reaches it: a lenient older
/// server would run what it does not understand. Silence and an early end speak for an older one.
pub async fn check_modern(upstream: &Arc<Upstream>, child: &Arc<StdioLink>) -> Result<(), Failure> {
    let link = Link::Stdio(child.clone());
    match tokio::time::timeout(SILENCE, probe(upstream, &link)).await {
        Ok(Err(Failure::Died)) | Err(_) => Err(Failure::OtherEra(SAYS_NOTHING)),
        Ok(Ok(true)) => Ok(()),
        Ok(Ok(false)) => Err(Failure::OtherEra("revisions before 2026-07-28")),
        Ok(Err(failure)) => Err(failure),
    }
}

/// Whether a server speaks the modern revision. Failures that say nothing of it stay failures.
pub async fn probe(upstream: &Arc<Upstream>, link: &Link) -> Result<bool, Failure> {
    match ask(upstream, link, "server/discover", None).await {
        Ok(said) => Ok(has_modern(said.value().get("supportedVersions"))),
        Err(Failure::Answered { status: 401 | 403, .. } | Failure::Wordless { status: 401 | 403 }) => {
            Err(Failure::NeedsAuth)
        }
        Err(Failure::Answered { status: status @ (429 | 500..), .. }) => Err(Failure::Wordless { status }),
        Err(Failure::Wordless { status: status @ (429 | 500..) }) => Err(Failure::Wordless { status }),
        Err(Failure::Answered { error, .. }) => Ok(is_modern_error(&error)),
        Err(Failure::Wordless { .. }) => Ok(false),
        Err(failure) => Err(failure),
    }
}

fn has_modern(versions: Option<Value<'_>>) -> bool {
    versions.into_iter().flat_map(Value::items).any(|version| {
        version.as_str().and_then(|text| Version::parse(&text)).is_some_and(|version| version.era() == Era::Modern)
    })
}

/// Errors only a modern server gives.
fn is_modern_error(error: &str) -> bool {
    let Ok(error) = Document::parse(error, Limits::DEFAULT) else { return false };
    match error.root().get("code").map(Value::raw) {
        Some("-32020" | "-32021") => true,
        Some("-32022") => has_modern(error.root().get("data").and_then(|data| data.get("supported"))),
        _ => false,
    }
}
