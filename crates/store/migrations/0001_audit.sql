-- One row per call that left (completed by its outcome), per refusal and per event.
CREATE TABLE audit_calls (
    node TEXT NOT NULL,
    sequence BIGINT NOT NULL,
    hash TEXT NOT NULL,
    kind TEXT NOT NULL,
    call_id BIGINT NOT NULL,
    time_text TEXT NOT NULL,
    time_us BIGINT NOT NULL,
    decision TEXT,
    stage TEXT,
    reason TEXT,
    status TEXT,
    server TEXT,
    tool TEXT,
    user_name TEXT,
    agent_type TEXT,
    token_id TEXT,
    task_id TEXT,
    approval_id TEXT,
    duration_us BIGINT,
    door TEXT,
    method TEXT,
    group_names TEXT,
    mode TEXT,
    project_id TEXT,
    run_id TEXT,
    job_id TEXT,
    session_mark TEXT,
    rule_name TEXT,
    rule_source TEXT,
    policy_version BIGINT,
    request_bytes BIGINT,
    response_bytes BIGINT,
    arguments_digest TEXT,
    detail TEXT,
    outcome_sequence BIGINT,
    PRIMARY KEY (node, sequence)
);

CREATE INDEX audit_calls_by_time ON audit_calls (time_us, node, sequence);
CREATE INDEX audit_calls_by_call ON audit_calls (node, call_id);

-- How far each node's journal has been delivered, and where reading goes on.
CREATE TABLE shipped (
    node TEXT NOT NULL PRIMARY KEY,
    sequence BIGINT NOT NULL,
    hash TEXT NOT NULL,
    segment BIGINT NOT NULL,
    byte_offset BIGINT NOT NULL
);

-- Written by gateways, read by everybody else.
CREATE TABLE server_status (
    name TEXT NOT NULL PRIMARY KEY,
    status TEXT NOT NULL,
    tools BIGINT NOT NULL,
    detail TEXT,
    updated TEXT NOT NULL
);
