-- How the servers of each gateway are; written by gateways, read by everybody else.
DROP TABLE server_status;

CREATE TABLE server_status (
    node TEXT NOT NULL,
    name TEXT NOT NULL,
    owner TEXT,
    status TEXT NOT NULL,
    tools BIGINT NOT NULL,
    detail TEXT,
    updated TEXT NOT NULL,
    PRIMARY KEY (node, name)
);
