-- One import of a tenant at a time, among all processes and servers on the database: the row is the lock. Who holds it
-- renews it; one that is not renewed belongs to a dead process.
CREATE TABLE imports (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL UNIQUE REFERENCES tenants (id) ON DELETE CASCADE,
  owner TEXT NOT NULL,
  -- Null while rows are staged. From then on all of them are applied, after a crash too.
  committed_at INTEGER,
  renewed_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

-- What a large import changes: asset by asset, each in the order of its rows. Each batch that is applied is deleted in the same transaction.
CREATE TABLE import_rows (
  import_id INTEGER NOT NULL REFERENCES imports (id) ON DELETE CASCADE,
  asset_id INTEGER NOT NULL,
  row INTEGER NOT NULL,
  -- JSON: title, description and tags, as far as they change; a tag that is null is removed.
  change TEXT NOT NULL,
  PRIMARY KEY (import_id, asset_id, row)
) STRICT, WITHOUT ROWID;
