-- Calls that are held for somebody's answer, and what became of them. What a person sees of a call, and what a person
-- said, is sealed; marks are keyed, so that nobody who reads them can try guesses.
CREATE TABLE approvals (
    id TEXT NOT NULL PRIMARY KEY,
    state TEXT NOT NULL,
    -- Of caller, server, tool, definition and the exact call.
    call_mark TEXT NOT NULL,
    caller_mark TEXT NOT NULL,
    server TEXT NOT NULL,
    tool TEXT NOT NULL,
    user_name TEXT,
    sealed BYTEA NOT NULL,
    answer BYTEA,
    held_us BIGINT NOT NULL,
    expires_us BIGINT NOT NULL,
    changed_us BIGINT NOT NULL,
    -- The journal of the gateway that makes the call.
    node TEXT,
    taken_us BIGINT,
    -- When it last said that the call is on its way.
    seen_us BIGINT,
    version BIGINT NOT NULL
);

-- The same call waits once, whoever else is told of it.
CREATE UNIQUE INDEX approvals_open ON approvals (call_mark) WHERE state IN ('held', 'approved', 'consumed', 'dispatched');
CREATE INDEX approvals_by_call ON approvals (call_mark, held_us);
CREATE INDEX approvals_by_caller ON approvals (caller_mark, state, server, tool, changed_us);
CREATE INDEX approvals_by_state ON approvals (state, expires_us);
CREATE INDEX approvals_by_time ON approvals (held_us, id);
CREATE INDEX approvals_by_version ON approvals (version);

INSERT INTO counters (name, value) VALUES ('approvals', 0);

-- What the journals say of calls that were made under an approval.
CREATE INDEX audit_calls_by_approval ON audit_calls (approval_id) WHERE approval_id IS NOT NULL;
