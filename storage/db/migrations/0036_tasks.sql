-- The result of the plan task of an attempt, and why the attempt is encoded in one run.
ALTER TABLE transcoding_attempts ADD COLUMN plan TEXT;
ALTER TABLE transcoding_attempts ADD COLUMN uncuttable TEXT;
-- Of the names and init segments of the first chunk that was completed: all chunks must have the same.
ALTER TABLE transcoding_attempts ADD COLUMN renditions_hash TEXT;

-- Parts of one attempt of a job, which workers lease independently. The columns of the queue are those of jobs.
CREATE TABLE transcoding_tasks (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  job_id INTEGER NOT NULL REFERENCES transcoding_jobs (id) ON DELETE CASCADE,
  attempt_id INTEGER NOT NULL REFERENCES transcoding_attempts (id) ON DELETE CASCADE,
  kind TEXT NOT NULL CHECK (kind IN ('plan', 'chunk', 'audio', 'images', 'whole')),
  -- The range of a chunk; the last one has no end.
  number INTEGER NOT NULL DEFAULT 0,
  first_segment INTEGER,
  segments INTEGER,
  first_frame INTEGER,
  end_frame INTEGER,
  status TEXT NOT NULL CHECK (status IN ('waiting', 'queued', 'running', 'completed', 'failed', 'canceled')),
  priority INTEGER NOT NULL DEFAULT 0,
  turn INTEGER NOT NULL DEFAULT 0,
  available_at INTEGER NOT NULL,
  -- Its share of the job's progress, of 100.
  weight REAL NOT NULL,
  progress REAL NOT NULL DEFAULT 0,
  progressed_at INTEGER,
  stage TEXT,
  failures INTEGER NOT NULL DEFAULT 0,
  max_attempts INTEGER NOT NULL,
  -- The lease that is valid, or was last.
  lease_id INTEGER,
  lease_expires_at INTEGER,
  worker_id TEXT,
  -- What it has written, until the job has ended.
  result TEXT,
  error_code TEXT,
  error_message TEXT,
  log_tail TEXT,
  started_at INTEGER,
  finished_at INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX tasks_queued ON transcoding_tasks (max(priority, 10) DESC, turn, available_at, id) WHERE status = 'queued';
CREATE INDEX tasks_queued_of_tenant ON transcoding_tasks (tenant_id, priority DESC, job_id, id) WHERE status = 'queued';
CREATE INDEX tasks_turns ON transcoding_tasks (turn) WHERE status = 'queued';
CREATE INDEX tasks_turns_of_tenant ON transcoding_tasks (tenant_id, turn) WHERE status = 'queued';
CREATE INDEX tasks_leased ON transcoding_tasks (lease_expires_at) WHERE status = 'running';
CREATE INDEX tasks_by_attempt ON transcoding_tasks (attempt_id, status);
CREATE INDEX tasks_by_job ON transcoding_tasks (job_id, id);
CREATE INDEX tasks_by_tenant ON transcoding_tasks (tenant_id);

-- One row a lease, as transcoding_attempts has them for jobs: only the hash of a token is stored.
CREATE TABLE task_leases (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  task_id INTEGER NOT NULL REFERENCES transcoding_tasks (id) ON DELETE CASCADE,
  idempotency_key TEXT NOT NULL UNIQUE,
  lease_hash TEXT NOT NULL,
  worker_id TEXT,
  outcome TEXT CHECK (outcome IN ('completed', 'failed', 'expired', 'released', 'canceled')),
  -- Of the body of `complete`, so that a repeat is recognized.
  result_hash TEXT,
  started_at INTEGER NOT NULL,
  ended_at INTEGER
) STRICT;
CREATE INDEX task_leases_by_task ON task_leases (task_id, id);
