//! Random callers: persons and agents, with roles, modes, contexts and tokens of a small alphabet.

use jiff::{SignedDuration, Timestamp};
use toolwarden_core::{Caller, CallerKind, Context, Standing, TokenClaims};

use crate::tape::Tape;

pub const SLUGS: [&str; 5] = ["m1", "m2", "m3", "code", "ghost-mode"];

/// A moment in the weeks around the end of summer time in Europe and America.
pub fn caller_time(tape: &mut Tape<'_>) -> Timestamp {
    let start = Timestamp::from_second(1_761_264_000).unwrap_or(Timestamp::UNIX_EPOCH);
    let minutes = i64::from(tape.byte()) * 97 + i64::from(tape.byte() % 4) * 15;
    start.checked_add(SignedDuration::from_mins(minutes)).unwrap_or(start)
}

pub fn caller(tape: &mut Tape<'_>, time: Timestamp) -> Caller {
    let kind = tape.pick(CallerKind::LocalPerson, &[CallerKind::Person, CallerKind::Agent, CallerKind::Agent]);
    let user = match kind {
        CallerKind::LocalPerson => Some(if tape.chance(3) { "bob" } else { "ann" }),
        CallerKind::Person => (!tape.chance(4)).then(|| tape.pick("bob", &["cid", "ann", "eve"])),
        CallerKind::Agent => (!tape.chance(20)).then(|| tape.pick("bob", &["cid", "ann", "eve"])),
    };
    let role = match kind {
        CallerKind::Agent => (!tape.chance(2)).then(|| {
            tape.pick(
                "scout",
                &["pm", "scout", "worker", "sandbox", "pm", "pa", "scout", "nobody", "worker", "pm", "pa"],
            )
        }),
        CallerKind::Person | CallerKind::LocalPerson => tape.chance(10).then(|| tape.pick("pm", &["scout", "sandbox"])),
    };
    let mode = tape.chance(40).then(|| tape.pick("m1", &["m2", "m3", "m1", "m2", "m3", "code", "ghost-mode"]));
    let groups = tape.texts(40, &["dev", "ops"]);
    let context = context(tape);
    let token = token(tape, kind, mode, time);
    Caller {
        kind,
        user: user.map(str::to_owned),
        groups,
        role: role.map(str::to_owned),
        mode: mode.map(str::to_owned),
        context,
        token,
    }
}

fn context(tape: &mut Tape<'_>) -> Context {
    let mut id = |chance: u32| tape.chance(chance).then(|| tape.pick("t1", &["t1", "t2"]).to_owned());
    Context { task: id(85), project: id(50), run: id(50), job: id(85), session: id(30) }
}

fn token(tape: &mut Tape<'_>, kind: CallerKind, mode: Option<&str>, time: Timestamp) -> TokenClaims {
    let mut modes = Vec::new();
    if kind == CallerKind::Agent {
        modes.extend(mode.filter(|_| !tape.chance(10)).map(str::to_owned));
    }
    if tape.chance(12) {
        modes.extend(tape.texts(30, &SLUGS));
    }
    let expires_at = tape.chance(10).then(|| {
        let hours = SignedDuration::from_hours(i64::from(tape.pick(48_i8, &[5, 1, 0, -1])));
        time.checked_add(hours).unwrap_or(time)
    });
    TokenClaims {
        id: tape.chance(60).then(|| tape.pick("tok-1", &["tok-2"]).to_owned()),
        modes,
        task_tools: tape.texts(60, &["api.call"]),
        expires_at,
        standing: match tape.byte() % 24 {
            0 => Standing::Revoked,
            1 => Standing::Unknown,
            _ => Standing::Good,
        },
        is_anonymous: false,
        digest: None,
        workspace: tape.chance(20).then(|| tape.pick("/w", &["/v", "/nowhere"]).into()),
        calls_left: tape.chance(6).then(|| u64::from(tape.byte() % 2)),
        may_answer: false,
        ancestors: Vec::new(),
    }
}
