-- Times are integer milliseconds since the epoch, lists and maps are JSON text.
CREATE TABLE tenants (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  slug TEXT NOT NULL UNIQUE,
  status TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'suspended')),
  plan_name TEXT NOT NULL DEFAULT 'pro' CHECK (plan_name IN ('free', 'starter', 'pro', 'enterprise')),
  default_playback_policy TEXT NOT NULL DEFAULT 'signed' CHECK (default_playback_policy IN ('public', 'signed')),
  storage_bytes INTEGER NOT NULL DEFAULT 0,
  egress_bytes INTEGER NOT NULL DEFAULT 0,
  transcoding_ms INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE api_keys (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  scopes TEXT NOT NULL,
  token_hash TEXT NOT NULL UNIQUE,
  last_four TEXT NOT NULL,
  expires_at INTEGER,
  last_used_at INTEGER,
  revoked_at INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX api_keys_by_tenant ON api_keys (tenant_id, id);

CREATE TABLE assets (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  external_id TEXT NOT NULL,
  title TEXT NOT NULL,
  description TEXT,
  collection_id INTEGER,
  input_status TEXT NOT NULL CHECK (input_status IN ('pending', 'uploaded', 'failed')),
  playback_status TEXT NOT NULL CHECK (playback_status IN ('draft', 'processing', 'ready', 'errored')),
  playback_policy TEXT NOT NULL CHECK (playback_policy IN ('public', 'signed')),
  provider TEXT NOT NULL DEFAULT 'managed' CHECK (provider IN ('managed', 'external_serve')),
  manifest_url TEXT,
  source_bytes INTEGER NOT NULL DEFAULT 0,
  storage_bytes INTEGER NOT NULL DEFAULT 0,
  duration_seconds REAL NOT NULL DEFAULT 0,
  source_key TEXT NOT NULL,
  source_sha256 TEXT,
  original_filename TEXT,
  relative_path TEXT,
  -- Everything that was published lies under this prefix; a new publication gets a new one.
  media_prefix TEXT,
  manifest_path TEXT,
  dash_manifest_path TEXT,
  thumbnail_path TEXT,
  storyboard_path TEXT,
  renditions TEXT NOT NULL DEFAULT '[]',
  width INTEGER,
  height INTEGER,
  frame_rate REAL,
  progress INTEGER NOT NULL DEFAULT 0,
  stage TEXT,
  error_code TEXT,
  error_message TEXT,
  tags TEXT NOT NULL DEFAULT '{}',
  ready_at INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (tenant_id, external_id)
) STRICT;
CREATE INDEX assets_by_tenant ON assets (tenant_id, id);
-- A server-made id is unique over all tenants and resolves on the public pages; a client's own only in its tenant.
CREATE UNIQUE INDEX assets_public_id ON assets (external_id) WHERE substr(external_id, 1, 4) = 'vid_';

CREATE TABLE uploads (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  asset_id INTEGER NOT NULL REFERENCES assets (id) ON DELETE CASCADE,
  status TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'completed', 'failed', 'aborted', 'expired')),
  filename TEXT NOT NULL,
  content_type TEXT NOT NULL,
  bytes_expected INTEGER NOT NULL,
  bytes_received INTEGER,
  object_key TEXT NOT NULL UNIQUE,
  source_width INTEGER,
  source_height INTEGER,
  captions TEXT NOT NULL DEFAULT '[]',
  expires_at INTEGER NOT NULL,
  completed_at INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX uploads_by_asset ON uploads (asset_id);
CREATE INDEX uploads_pending ON uploads (expires_at) WHERE status = 'pending';

CREATE TABLE transcoding_jobs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  asset_id INTEGER NOT NULL REFERENCES assets (id) ON DELETE CASCADE,
  status TEXT NOT NULL DEFAULT 'queued' CHECK (status IN ('queued', 'running', 'completed', 'failed', 'canceled')),
  priority INTEGER NOT NULL DEFAULT 0,
  profile TEXT NOT NULL DEFAULT 'default',
  -- Attempts that ended badly. A release is not one.
  failures INTEGER NOT NULL DEFAULT 0,
  max_attempts INTEGER NOT NULL,
  -- The attempt that holds, or last held, the lease.
  attempt_id INTEGER,
  worker_id TEXT,
  progress INTEGER NOT NULL DEFAULT 0,
  stage TEXT,
  lease_expires_at INTEGER,
  available_at INTEGER NOT NULL,
  error_code TEXT,
  error_message TEXT,
  log_tail TEXT,
  started_at INTEGER,
  finished_at INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX jobs_queued ON transcoding_jobs (priority DESC, available_at, id) WHERE status = 'queued';
CREATE INDEX jobs_leased ON transcoding_jobs (lease_expires_at) WHERE status = 'running';
CREATE INDEX jobs_by_asset ON transcoding_jobs (asset_id, id);

-- One row a lease. The token is derived from it and never kept; its hash is.
CREATE TABLE transcoding_attempts (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  job_id INTEGER NOT NULL REFERENCES transcoding_jobs (id) ON DELETE CASCADE,
  attempt INTEGER NOT NULL,
  idempotency_key TEXT NOT NULL UNIQUE,
  lease_hash TEXT NOT NULL,
  worker_id TEXT,
  outcome TEXT CHECK (outcome IN ('completed', 'failed', 'expired', 'released', 'canceled')),
  -- What `complete` was called with, so that a repeat can be told from another body.
  result_hash TEXT,
  started_at INTEGER NOT NULL,
  ended_at INTEGER,
  -- When what it left in storage was removed.
  swept_at INTEGER
) STRICT;
CREATE INDEX attempts_by_job ON transcoding_attempts (job_id, id);
CREATE INDEX attempts_to_sweep ON transcoding_attempts (ended_at) WHERE swept_at IS NULL AND outcome <> 'completed';

-- The outbox: an event is written in the transaction of the change that it tells of.
CREATE TABLE events (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  event_id TEXT NOT NULL UNIQUE,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  type TEXT NOT NULL,
  data TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX events_by_tenant ON events (tenant_id, id);

CREATE TABLE idempotency_records (
  caller TEXT NOT NULL,
  key TEXT NOT NULL,
  request_hash TEXT NOT NULL,
  status INTEGER NOT NULL,
  body TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (caller, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_by_age ON idempotency_records (created_at);
