-- While one lives nothing that rows of a moment ago named is removed from storage. It ends by itself: whoever asked for
-- it may die.
CREATE TABLE removal_holds (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  expires_at INTEGER NOT NULL
) STRICT;

-- Who changed what with the admin token, and who touched a tenant's credentials; written in the transaction of the
-- change. No reference to tenants: what was done to one outlives it.
CREATE TABLE audit_entries (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  created_at INTEGER NOT NULL,
  actor TEXT NOT NULL CHECK (actor IN ('admin', 'key', 'anyone')),
  key_id INTEGER,
  tenant_id INTEGER,
  address TEXT NOT NULL,
  -- What the caller says of itself: who sat at the command line.
  operator TEXT,
  method TEXT NOT NULL,
  route TEXT NOT NULL,
  target_type TEXT NOT NULL,
  target_id TEXT,
  -- Names alone: a value may be a secret.
  fields TEXT NOT NULL,
  request_id TEXT NOT NULL
) STRICT;
CREATE INDEX audit_by_tenant ON audit_entries (tenant_id, id);
CREATE INDEX audit_by_age ON audit_entries (created_at);
