-- How much is kept of one caller's held calls: summed whenever one more is to be held, so from an index alone.
ALTER TABLE approvals ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;
UPDATE approvals SET bytes = LENGTH(sealed);
CREATE INDEX approvals_by_caller_bytes ON approvals (caller_mark, state, bytes);

-- Who is named to answer, each between bars, to find those calls among many. What counts is sealed with the call.
ALTER TABLE approvals ADD COLUMN approvers TEXT;

-- A page of those that wait costs what it shows, however many others wait or ended.
CREATE INDEX approvals_listed ON approvals (state, held_us, id);
CREATE INDEX approvals_of_user ON approvals (user_name, state, held_us, id);
