//! What an upgrade changes for tokens that exist already, said once: at the first start after it.

use std::fs;

use toolwarden_policy::input::LocalInput;

use crate::locations::Locations;

/// Present in the data directory once the change below was said.
const TOLD: &str = "told-permissions-of-tokens";

/// What PERM-1 changes for tokens issued before, at the first start that asks; none where nobody is affected. `tokens`
/// is how many are issued to the operating-system user.
#[must_use]
pub fn permissions_of_tokens(locations: &Locations, local: &LocalInput, tokens: usize) -> Option<String> {
    let mark = locations.data_dir.join(TOLD);
    if mark.exists() {
        return None;
    }
    // Where this fails it is said again at the next start, rather than never.
    let _ = fs::write(&mark, "");
    let has_files = !local.files.is_empty() || !local.workspaces.is_empty();
    (tokens > 0 && has_files).then(|| {
        let user = toolwarden_core::name::shown(&local.user);
        format!(
            "permissions.json now counts for every token issued to {user}: {tokens} token(s). Their calls run unasked where \
             an entry of these files matches (wider), entries stored for {user} no longer count where a file defines the \
             list (narrower), and the workspace file is that of the token's workspace, else of this server's. See \
             `toolwarden explain SERVER:TOOL --as TOKEN_ID`"
        )
    })
}
