-- What a desktop client encoded itself. Objects lie under tenants/<tenant>/ingest/<folder>/ until a commit has copied what
-- its assets need to places of their own; then, and when a batch ends otherwise, all under the folder goes.
CREATE TABLE ingest_batches (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id),
  name TEXT,
  status TEXT NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'committed', 'canceled', 'expired')),
  -- Random, and part of what the lease token is derived from: of the token itself nothing is kept.
  folder TEXT NOT NULL UNIQUE,
  lease_seconds INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  upload_count INTEGER NOT NULL DEFAULT 0,
  -- Of the manifest that was committed, and what was answered: for a repeat.
  manifest_hash TEXT,
  result TEXT,
  ended_at INTEGER,
  -- When no signed address was good any more, and all was removed.
  swept_at INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX ingest_batches_open ON ingest_batches (expires_at) WHERE status = 'open';
CREATE INDEX ingest_batches_unswept ON ingest_batches (ended_at) WHERE status <> 'open' AND swept_at IS NULL;

CREATE TABLE ingest_uploads (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id),
  batch_id INTEGER NOT NULL REFERENCES ingest_batches (id) ON DELETE CASCADE,
  -- Relative to the batch.
  object_key TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'completed', 'aborted')),
  mode TEXT NOT NULL CHECK (mode IN ('put', 'multipart', 'proxy')),
  content_type TEXT NOT NULL,
  bytes_expected INTEGER NOT NULL CHECK (bytes_expected >= 0),
  bytes_received INTEGER,
  sha256 TEXT,
  multipart_id TEXT,
  part_size INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX ingest_uploads_by_key ON ingest_uploads (batch_id, object_key) WHERE status <> 'aborted';
CREATE INDEX ingest_uploads_by_batch ON ingest_uploads (batch_id, id);

-- What a client has said of its parts, so that a list of many uploads asks storage nothing.
CREATE TABLE ingest_parts (
  upload_id INTEGER NOT NULL REFERENCES ingest_uploads (id) ON DELETE CASCADE,
  part_number INTEGER NOT NULL,
  etag TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  PRIMARY KEY (upload_id, part_number)
) STRICT, WITHOUT ROWID;
