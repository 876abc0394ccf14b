-- Protection that all processes of a data directory and all replicas share (WORK-3).

-- Flow labels each caller has met. The anchor is a keyed mark of a token, a run, or a person in a workspace.
CREATE TABLE flow_labels (
    anchor TEXT NOT NULL,
    label TEXT NOT NULL,
    -- 'token', 'run' or 'person'.
    kind TEXT NOT NULL,
    -- The last call under this anchor, to within a minute.
    used_us BIGINT NOT NULL,
    PRIMARY KEY (anchor, label)
);

CREATE INDEX flow_labels_by_use ON flow_labels (kind, used_us);

-- Amounts counted in slots of time: calls per minute, questions per hour, money per day.
CREATE TABLE tallies (
    name TEXT NOT NULL,
    slot BIGINT NOT NULL,
    amount BIGINT NOT NULL,
    -- In seconds; the slot counts for nothing afterwards.
    expires_s BIGINT NOT NULL,
    PRIMARY KEY (name, slot)
);

CREATE INDEX tallies_by_expiry ON tallies (expires_s);

-- What clients say of themselves, and what a record of a held call tells of it.
ALTER TABLE audit_calls ADD COLUMN client TEXT;
ALTER TABLE audit_calls ADD COLUMN client_version TEXT;
ALTER TABLE audit_calls ADD COLUMN event TEXT;
