-- 0 to 1: how certain speech recognition is of the text; null where it does not say, and for other texts.
ALTER TABLE subtitles ADD COLUMN confidence REAL;
-- Why a text could not be created.
ALTER TABLE subtitles ADD COLUMN error_code TEXT;
ALTER TABLE subtitles ADD COLUMN error_message TEXT;

-- When a worker last asked for such a job, which only those do that can transcribe.
ALTER TABLE workers ADD COLUMN transcribes_at INTEGER;

-- Captions that are generated for an asset that is ready; at most one job for each subtitle, which exists before its text.
CREATE TABLE caption_jobs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  asset_id INTEGER NOT NULL REFERENCES assets (id) ON DELETE CASCADE,
  subtitle_id INTEGER NOT NULL UNIQUE REFERENCES subtitles (id) ON DELETE CASCADE,
  status TEXT NOT NULL CHECK (status IN ('queued', 'running', 'completed', 'failed')),
  -- Null: it is detected.
  language TEXT,
  -- [{language, subtitle_id, status, error, attempts}]
  translations TEXT NOT NULL DEFAULT '[]',
  -- Of a completed job: when the next translation is tried.
  translate_at INTEGER,
  -- Position in the fair queue.
  turn INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0,
  available_at INTEGER NOT NULL,
  progress REAL NOT NULL DEFAULT 0,
  stage TEXT,
  worker_id TEXT,
  -- Of what the attempt writes.
  prefix TEXT,
  -- The asset's manifest when the attempt began: it may be trimmed or encoded again meanwhile.
  manifest_path TEXT,
  claim_key TEXT,
  lease_hash TEXT,
  lease_expires_at INTEGER,
  error_code TEXT,
  error_message TEXT,
  started_at INTEGER,
  finished_at INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX caption_jobs_by_tenant ON caption_jobs (tenant_id, id);
CREATE INDEX caption_jobs_of_asset ON caption_jobs (asset_id);
CREATE INDEX caption_jobs_queue ON caption_jobs (turn, available_at, id) WHERE status = 'queued';
CREATE INDEX caption_jobs_turns ON caption_jobs (tenant_id, turn) WHERE status = 'queued';
CREATE INDEX caption_jobs_running ON caption_jobs (lease_expires_at) WHERE status = 'running';
CREATE INDEX caption_jobs_claimed ON caption_jobs (claim_key) WHERE claim_key IS NOT NULL;
CREATE INDEX caption_jobs_translations ON caption_jobs (translate_at) WHERE translate_at IS NOT NULL;
