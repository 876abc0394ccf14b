-- Held calls that their callers follow as tasks: which approval each waits for, and, sealed, how far it is. A result is
-- kept here until its task is forgotten.
CREATE TABLE held_tasks (
    id TEXT NOT NULL PRIMARY KEY,
    approval TEXT NOT NULL,
    caller_mark TEXT NOT NULL,
    sealed BYTEA NOT NULL,
    bytes BIGINT NOT NULL,
    made_us BIGINT NOT NULL,
    changed_us BIGINT NOT NULL,
    expires_us BIGINT NOT NULL,
    version BIGINT NOT NULL
);

CREATE INDEX held_tasks_by_approval ON held_tasks (approval);
CREATE INDEX held_tasks_by_caller ON held_tasks (caller_mark, made_us, bytes);
CREATE INDEX held_tasks_by_expiry ON held_tasks (expires_us);
