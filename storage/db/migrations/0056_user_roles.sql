-- Users before this version may do everything that their tenant may.
ALTER TABLE users ADD COLUMN role TEXT NOT NULL DEFAULT 'admin' CHECK (role IN ('admin', 'editor', 'viewer'));
ALTER TABLE users ADD COLUMN name TEXT;
-- Of the console; null: the browser's.
ALTER TABLE users ADD COLUMN language TEXT;
ALTER TABLE users ADD COLUMN theme TEXT;

-- What a person recognizes a session by.
ALTER TABLE sessions ADD COLUMN address TEXT;
ALTER TABLE sessions ADD COLUMN user_agent TEXT;

CREATE TABLE invitations (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  email_address TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('admin', 'editor', 'viewer')),
  code_hash TEXT NOT NULL UNIQUE,
  expires_at INTEGER NOT NULL,
  -- Accepted or revoked. The row stays for a while, so that the address says so.
  ended_at INTEGER,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX invitations_by_tenant ON invitations (tenant_id, id);
CREATE INDEX invitations_by_expiry ON invitations (expires_at);
