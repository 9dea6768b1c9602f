-- Where media may be requested from, for tokens that name a restriction.
CREATE TABLE playback_restrictions (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  -- JSON: names such as `example.com` and `*.example.com`, or `*`.
  allowed_domains TEXT NOT NULL,
  allow_no_referrer INTEGER NOT NULL,
  allow_no_user_agent INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX playback_restrictions_by_tenant ON playback_restrictions (tenant_id, id);
