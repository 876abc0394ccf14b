-- What an upgrade changed for those who used an earlier version: one row for each change that concerns this database.
-- The migration that brings a change inserts its row where the database has something it concerns; a start tells it once.
CREATE TABLE upgrade_notices (
    name TEXT NOT NULL PRIMARY KEY,
    told_us BIGINT
);

-- Tokens without rights have none from now on (SELF-5).
INSERT INTO upgrade_notices (name, told_us) SELECT 'client_rights', NULL WHERE EXISTS (SELECT 1 FROM tokens);
