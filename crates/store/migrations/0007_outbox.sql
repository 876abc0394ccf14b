-- What is to be told elsewhere of held calls: written with the move itself, and gone once somebody took it.
CREATE TABLE outbox (
    id TEXT NOT NULL PRIMARY KEY,
    webhook TEXT NOT NULL,
    approval TEXT NOT NULL,
    -- The state it tells of.
    state TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    -- Nobody carries it before; moved on by whoever does.
    due_us BIGINT NOT NULL
);

CREATE INDEX outbox_due ON outbox (webhook, due_us);
