-- Answers that count for more than one call: for a conversation, a run, or so many calls. What they permit is sealed.
CREATE TABLE grants (
    id TEXT NOT NULL PRIMARY KEY,
    server TEXT NOT NULL,
    sealed BYTEA NOT NULL,
    issued_us BIGINT NOT NULL,
    expires_us BIGINT NOT NULL,
    -- None = as many as may be.
    calls_left BIGINT,
    revoked_us BIGINT
);

CREATE INDEX grants_by_server ON grants (server, expires_us);
