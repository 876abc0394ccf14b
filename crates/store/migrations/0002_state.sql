-- What people decided: one row per setting, user, mode, role, rule, server, tool and the admin's controls.
-- Sealed; place and version are part of the seal, so a row counts only where it was written.
CREATE TABLE records (
    kind TEXT NOT NULL,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    version BIGINT NOT NULL,
    sealed BYTEA NOT NULL,
    PRIMARY KEY (kind, owner, name)
);

-- Every change of them: who, when, why.
CREATE TABLE versions (
    version BIGINT NOT NULL PRIMARY KEY,
    time_us BIGINT NOT NULL,
    author TEXT NOT NULL,
    door TEXT NOT NULL,
    summary TEXT NOT NULL,
    reason TEXT
);

-- And what it changed; nothing before = new, nothing after = taken away.
CREATE TABLE changes (
    version BIGINT NOT NULL,
    kind TEXT NOT NULL,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    former BYTEA,
    latter BYTEA,
    PRIMARY KEY (version, kind, owner, name)
);

-- How far each kind of state is: what a gateway compares to learn that something changed.
CREATE TABLE counters (
    name TEXT NOT NULL PRIMARY KEY,
    value BIGINT NOT NULL
);

INSERT INTO counters (name, value) VALUES ('policy', 0);
INSERT INTO counters (name, value) VALUES ('tokens', 0);
INSERT INTO counters (name, value) VALUES ('keys', 0);

-- The roots that everything sealed is sealed with, themselves sealed under the master key, which is kept elsewhere.
CREATE TABLE keys (
    id BIGINT NOT NULL PRIMARY KEY,
    state TEXT NOT NULL,
    master TEXT NOT NULL,
    sealed BYTEA NOT NULL
);

-- Credentials of agents and of persons' clients: a digest of the secret, and, sealed with it, what it is good for.
CREATE TABLE tokens (
    id TEXT NOT NULL PRIMARY KEY,
    digest TEXT NOT NULL,
    sealed BYTEA NOT NULL,
    issued_us BIGINT NOT NULL,
    issued_by TEXT NOT NULL,
    calls BIGINT NOT NULL,
    revoked_us BIGINT,
    version BIGINT NOT NULL
);

CREATE INDEX tokens_by_version ON tokens (version);
