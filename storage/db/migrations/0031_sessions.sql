-- Browser sessions. Those of the admin token have neither tenant, key nor user.
CREATE TABLE sessions (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  subject TEXT NOT NULL,
  token_hash TEXT NOT NULL UNIQUE,
  -- Of the admin token, keyed with the session's own: the session of an old one is not valid.
  admin_mark TEXT,
  tenant_id INTEGER REFERENCES tenants (id) ON DELETE CASCADE,
  api_key_id INTEGER REFERENCES api_keys (id) ON DELETE CASCADE,
  user_id INTEGER REFERENCES users (id) ON DELETE CASCADE,
  -- Moves with each use, up to `ends_at`, when the key expires.
  expires_at INTEGER NOT NULL,
  ends_at INTEGER,
  created_at INTEGER NOT NULL
);
CREATE INDEX sessions_by_tenant ON sessions (tenant_id);
CREATE INDEX sessions_by_key ON sessions (api_key_id, id);
CREATE INDEX sessions_by_user ON sessions (user_id, id);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);

-- A session ends with the credential that began it, and does not return when a tenant is resumed.
CREATE TRIGGER sessions_of_revoked_key AFTER UPDATE OF revoked_at ON api_keys WHEN new.revoked_at IS NOT NULL BEGIN
  DELETE FROM sessions WHERE api_key_id = new.id;
END;
CREATE TRIGGER sessions_of_changed_password AFTER UPDATE OF password_hash ON users BEGIN
  DELETE FROM sessions WHERE user_id = new.id;
END;
CREATE TRIGGER sessions_of_inactive_tenant AFTER UPDATE OF status ON tenants WHEN new.status <> 'active' BEGIN
  DELETE FROM sessions WHERE tenant_id = new.id;
END;

ALTER TABLE audit_entries ADD COLUMN user_id INTEGER;

-- The one-time code of the address that a first start prints.
CREATE TABLE setup_codes (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  code_hash TEXT NOT NULL,
  expires_at INTEGER NOT NULL
);
