-- The number of parts of audio that is recognized by several workers; null: by one.
ALTER TABLE caption_jobs ADD COLUMN parts INTEGER;

-- Parts of long audio, each of which one worker recognizes. They are deleted with the result of their job.
CREATE TABLE caption_parts (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  job_id INTEGER NOT NULL REFERENCES caption_jobs (id) ON DELETE CASCADE,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  asset_id INTEGER NOT NULL,
  -- From 0, in the order of their times.
  number INTEGER NOT NULL,
  -- Words between these times belong to the part.
  start_ms INTEGER NOT NULL,
  end_ms INTEGER NOT NULL,
  -- waiting: for samples of the audio, in which its language is detected.
  status TEXT NOT NULL CHECK (status IN ('waiting', 'queued', 'running', 'completed')),
  -- The language that is spoken; null: it is detected.
  language TEXT,
  -- What was detected where something is said.
  detected TEXT,
  -- What was recognized: deflated JSON.
  speech BLOB,
  -- Position in the fair queue, which it shares with the jobs.
  queue_position INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  available_at INTEGER NOT NULL,
  progress REAL NOT NULL DEFAULT 0,
  worker_id TEXT,
  claim_key TEXT,
  lease_hash TEXT,
  lease_expires_at INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (job_id, number)
) STRICT;
CREATE INDEX caption_parts_queue ON caption_parts (queue_position, available_at, id) WHERE status = 'queued';
CREATE INDEX caption_parts_of_tenant ON caption_parts (tenant_id, queue_position);
CREATE INDEX caption_parts_running ON caption_parts (lease_expires_at) WHERE status = 'running';
CREATE INDEX caption_parts_claimed ON caption_parts (claim_key) WHERE claim_key IS NOT NULL;
