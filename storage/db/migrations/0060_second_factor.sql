-- The second factor of a user (RFC 6238). Secrets are encrypted with a key that is not in the database.
ALTER TABLE users ADD COLUMN totp_secret TEXT;
-- A secret that was not confirmed with a code yet.
ALTER TABLE users ADD COLUMN totp_pending TEXT;
-- The time step of the last code that was accepted: each code works once.
ALTER TABLE users ADD COLUMN totp_step INTEGER NOT NULL DEFAULT 0;

CREATE TABLE recovery_codes (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  code_hash TEXT NOT NULL
) STRICT;
CREATE INDEX recovery_codes_by_user ON recovery_codes (user_id);
