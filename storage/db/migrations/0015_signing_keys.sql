-- The public halves of the keys that tenants sign playback tokens with. A private half is never here.
CREATE TABLE signing_keys (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  key_id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  algorithm TEXT NOT NULL CHECK (algorithm IN ('RS256', 'EdDSA')),
  public_key TEXT NOT NULL,
  revoked_at INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX signing_keys_by_tenant ON signing_keys (tenant_id, id);
CREATE INDEX signing_keys_live ON signing_keys (tenant_id) WHERE revoked_at IS NULL;
