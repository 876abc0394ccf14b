-- The newest held calls, of everybody and of one user, without sorting all of them.
CREATE INDEX approvals_by_state_and_time ON approvals (state, held_us, id);
CREATE INDEX approvals_of_user ON approvals (user_name, state, held_us, id);
