-- Arguments of calls without what is hidden, where the config asks for them.
ALTER TABLE audit_calls ADD COLUMN arguments TEXT;
