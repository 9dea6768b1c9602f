-- Links to one asset that work without an account, until they are deleted, expire or were played often enough.
CREATE TABLE shares (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  asset_id INTEGER NOT NULL REFERENCES assets (id) ON DELETE CASCADE,
  -- In the URL. Not hashed: its owner copies the URL again at any time.
  code TEXT NOT NULL UNIQUE,
  name TEXT,
  password_hash TEXT,
  expires_at INTEGER,
  max_plays INTEGER,
  play_count INTEGER NOT NULL DEFAULT 0,
  allow_download INTEGER NOT NULL DEFAULT 0,
  -- The row stays for a while, so that the URL says that the share has ended.
  deleted_at INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX shares_by_asset ON shares (asset_id, id);
CREATE INDEX shares_by_tenant ON shares (tenant_id, id);
CREATE INDEX shares_by_deletion ON shares (deleted_at) WHERE deleted_at IS NOT NULL;

-- The plays of the last day, so that a viewer's reload is not another one. Without a foreign key: a share may have very many,
-- and they are deleted in batches.
CREATE TABLE share_plays (
  share_id INTEGER NOT NULL,
  viewer_hash TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  PRIMARY KEY (share_id, viewer_hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX share_plays_by_time ON share_plays (started_at);
