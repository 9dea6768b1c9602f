-- Fair queueing: a job's turn is fixed when it is queued, so that a claim reads one row however long the queue is.
ALTER TABLE transcoding_jobs ADD COLUMN turn INTEGER NOT NULL DEFAULT 0;
-- How far the running attempt was when it last moved on, and when that was.
ALTER TABLE transcoding_jobs ADD COLUMN position REAL;
ALTER TABLE transcoding_jobs ADD COLUMN progressed_at INTEGER;
-- Among the tenant's own jobs; above 10, which only the operator can give, before everybody's.
ALTER TABLE assets ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;

DROP INDEX jobs_queued;
CREATE INDEX jobs_queued ON transcoding_jobs (max(priority, 10) DESC, turn, available_at, id) WHERE status = 'queued';
CREATE INDEX jobs_queued_of_tenant ON transcoding_jobs (tenant_id, priority DESC, available_at, id) WHERE status = 'queued';
CREATE INDEX jobs_turns ON transcoding_jobs (turn) WHERE status = 'queued';
CREATE INDEX jobs_turns_of_tenant ON transcoding_jobs (tenant_id, turn) WHERE status = 'queued';

-- What a fenced callback was answered, so that its repeat is answered alike whatever became of the job.
CREATE TABLE callback_receipts (
  attempt_id INTEGER NOT NULL REFERENCES transcoding_attempts (id) ON DELETE CASCADE,
  operation TEXT NOT NULL CHECK (operation IN ('heartbeat', 'complete', 'fail', 'release')),
  request_hash TEXT NOT NULL,
  status INTEGER NOT NULL,
  body TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (attempt_id, operation)
) STRICT, WITHOUT ROWID;
