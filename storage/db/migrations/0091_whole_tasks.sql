-- Every job consists of tasks: the queue, leases, progress and failures are those of tasks alone. A job that no worker has begun is
-- one task without an attempt, and what a worker leases as a job is a task that it knows as the job.
CREATE TABLE attempts_new (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  job_id INTEGER NOT NULL REFERENCES transcoding_jobs (id) ON DELETE CASCADE,
  attempt INTEGER NOT NULL,
  worker_id TEXT,
  outcome TEXT CHECK (outcome IN ('completed', 'failed', 'expired', 'released', 'canceled')),
  started_at INTEGER NOT NULL,
  ended_at INTEGER,
  -- When what it left in storage was removed.
  swept_at INTEGER,
  -- The result of its plan task, and why it is encoded in one run.
  plan TEXT,
  uncuttable TEXT,
  -- Hashes of the init segments of its chunks, by rendition: all chunks must have the same.
  renditions_hash TEXT
) STRICT;
INSERT INTO attempts_new
  SELECT id, job_id, attempt, worker_id, outcome, started_at, ended_at, swept_at, plan, uncuttable, renditions_hash
  FROM transcoding_attempts;

CREATE TABLE receipts_new (
  attempt_id INTEGER NOT NULL REFERENCES attempts_new (id) ON DELETE CASCADE,
  operation TEXT NOT NULL CHECK (operation IN ('heartbeat', 'complete', 'fail', 'release')),
  request_hash TEXT NOT NULL,
  status INTEGER NOT NULL,
  body TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (attempt_id, operation)
) STRICT, WITHOUT ROWID;
INSERT INTO receipts_new SELECT attempt_id, operation, request_hash, status, body, created_at FROM callback_receipts;

CREATE TABLE tasks_new (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  job_id INTEGER NOT NULL REFERENCES transcoding_jobs (id) ON DELETE CASCADE,
  -- Null: no worker has begun the job, which is this task.
  attempt_id INTEGER REFERENCES attempts_new (id) ON DELETE CASCADE,
  kind TEXT NOT NULL CHECK (kind IN ('whole', 'clip', 'join', 'plan', 'chunk', 'audio', 'images')),
  -- The contract of its lease has no task: the callbacks of the job are those of this task.
  known_as_job INTEGER NOT NULL DEFAULT 0 CHECK (known_as_job IN (0, 1)),
  -- Of a job that no worker has begun: it is to play early, so a worker plans it next to a long task.
  plans_early INTEGER NOT NULL DEFAULT 0 CHECK (plans_early IN (0, 1)),
  -- The range of a chunk; the last one has no end.
  number INTEGER NOT NULL DEFAULT 0,
  first_segment INTEGER,
  segments INTEGER,
  first_frame INTEGER,
  end_frame INTEGER,
  -- The video renditions that a chunk encodes; null: all.
  renditions TEXT,
  -- Whether the task publishes the asset before everything is encoded.
  publishes INTEGER NOT NULL DEFAULT 0 CHECK (publishes IN (0, 1)),
  status TEXT NOT NULL CHECK (status IN ('waiting', 'queued', 'running', 'completed', 'failed', 'canceled')),
  priority INTEGER NOT NULL DEFAULT 0,
  queue_position INTEGER NOT NULL DEFAULT 0,
  service_class TEXT NOT NULL DEFAULT 'normal'
    CHECK (service_class IN ('requested', 'first', 'ahead', 'abandoned', 'normal')),
  -- Order among the tasks of the job.
  rank INTEGER NOT NULL DEFAULT 0,
  -- The segment that a viewer waits for, while the worker is asked to end before it.
  yield_to TEXT,
  available_at INTEGER NOT NULL,
  -- What a worker must announce: {capability: least version}; null: nothing.
  requires TEXT,
  -- Its share of the job's progress, of 100.
  weight REAL NOT NULL,
  progress REAL NOT NULL DEFAULT 0,
  -- Of a task that is known as the job: its stage and the progress in it, the furthest so far.
  reached REAL NOT NULL DEFAULT 0,
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
INSERT INTO tasks_new (id, tenant_id, job_id, attempt_id, kind, number, first_segment, segments, first_frame, end_frame, renditions,
    publishes, status, priority, queue_position, service_class, rank, yield_to, available_at, requires, weight, progress, progressed_at,
    stage, failures, max_attempts, lease_id, lease_expires_at, worker_id, result, error_code, error_message, log_tail, started_at,
    finished_at, created_at, updated_at)
  SELECT id, tenant_id, job_id, attempt_id, kind, number, first_segment, segments, first_frame, end_frame, renditions,
    publishes, status, priority, queue_position, service_class, rank, yield_to, available_at, requires, weight, progress, progressed_at,
    stage, failures, max_attempts, lease_id, lease_expires_at, worker_id, result, error_code, error_message, log_tail, started_at,
    finished_at, created_at, updated_at
  FROM transcoding_tasks;

CREATE TABLE leases_new (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  task_id INTEGER NOT NULL REFERENCES tasks_new (id) ON DELETE CASCADE,
  idempotency_key TEXT NOT NULL UNIQUE,
  lease_hash TEXT NOT NULL,
  worker_id TEXT,
  outcome TEXT CHECK (outcome IN ('completed', 'failed', 'expired', 'released', 'canceled')),
  -- The hash of the body of `complete`, so that a repeat is recognized.
  result_hash TEXT,
  started_at INTEGER NOT NULL,
  ended_at INTEGER
) STRICT;
INSERT INTO leases_new
  SELECT id, task_id, idempotency_key, lease_hash, worker_id, outcome, result_hash, started_at, ended_at FROM task_leases;

-- The ids of deleted rows are not given again: URLs and tokens contain them. The rows of attempts follow those that there have been.
DELETE FROM sqlite_sequence WHERE name IN ('attempts_new', 'tasks_new', 'leases_new');
INSERT INTO sqlite_sequence (name, seq)
  SELECT 'attempts_new', seq FROM sqlite_sequence WHERE name = 'transcoding_attempts';
INSERT INTO sqlite_sequence (name, seq) SELECT 'tasks_new', seq FROM sqlite_sequence WHERE name = 'transcoding_tasks';
INSERT INTO sqlite_sequence (name, seq) SELECT 'leases_new', seq FROM sqlite_sequence WHERE name = 'task_leases';

-- What workers have leased as a job, or to plan it: the lease of the attempt becomes that of a task. A key that was used for a claim
-- stays used.
CREATE TABLE leases_of_attempts AS
  SELECT attempt.id AS attempt_id,
    attempt.id + coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'transcoding_tasks'), 0) AS task_id,
    attempt.id + coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'task_leases'), 0) AS lease_id
  FROM transcoding_attempts attempt
  WHERE NOT (attempt.lease_hash = '' AND attempt.idempotency_key LIKE 'continued %')
    AND NOT EXISTS (SELECT 1 FROM task_leases lease WHERE lease.idempotency_key = attempt.idempotency_key);
INSERT INTO tasks_new (id, tenant_id, job_id, attempt_id, kind, known_as_job, status, priority, queue_position, available_at, requires,
    weight, reached, progressed_at, max_attempts, lease_id, lease_expires_at, worker_id, started_at, finished_at, created_at,
    updated_at)
  SELECT leased.task_id, job.tenant_id, job.id, attempt.id,
    CASE WHEN attempt.lease_hash = '' THEN 'plan' WHEN job.clip IS NOT NULL THEN 'clip' WHEN job.joined IS NOT NULL THEN 'join'
      ELSE 'whole' END,
    attempt.lease_hash <> '',
    CASE WHEN attempt.outcome = 'completed' THEN 'completed' WHEN attempt.outcome IN ('failed', 'expired') THEN 'failed'
      WHEN attempt.outcome IS NULL AND job.status = 'running' AND job.attempt_id = attempt.id AND job.lease_expires_at IS NOT NULL
        THEN 'running'
      ELSE 'canceled' END,
    job.priority, job.queue_position, job.available_at, job.requires, 100,
    iif(job.attempt_id = attempt.id, coalesce(job.position, 0), 0),
    iif(job.attempt_id = attempt.id, job.progressed_at, NULL),
    job.max_attempts, leased.lease_id,
    iif(job.attempt_id = attempt.id AND job.status = 'running', job.lease_expires_at, NULL),
    iif(job.attempt_id = attempt.id, job.worker_id, attempt.worker_id),
    iif(job.attempt_id = attempt.id, coalesce(job.started_at, attempt.started_at), attempt.started_at),
    attempt.ended_at, attempt.started_at, coalesce(attempt.ended_at, job.updated_at)
  FROM leases_of_attempts leased
    JOIN transcoding_attempts attempt ON attempt.id = leased.attempt_id
    JOIN transcoding_jobs job ON job.id = attempt.job_id;
INSERT INTO leases_new (id, task_id, idempotency_key, lease_hash, worker_id, outcome, result_hash, started_at, ended_at)
  SELECT leased.lease_id, leased.task_id, attempt.idempotency_key, attempt.lease_hash, attempt.worker_id, attempt.outcome,
    attempt.result_hash, attempt.started_at, attempt.ended_at
  FROM leases_of_attempts leased JOIN transcoding_attempts attempt ON attempt.id = leased.attempt_id;
DROP TABLE leases_of_attempts;

-- One task for each job that waits.
INSERT INTO tasks_new (tenant_id, job_id, kind, plans_early, status, priority, queue_position, available_at, requires, weight,
    max_attempts, created_at, updated_at)
  SELECT tenant_id, id, CASE WHEN clip IS NOT NULL THEN 'clip' WHEN joined IS NOT NULL THEN 'join' ELSE 'whole' END, early_playback,
    'queued', priority, queue_position, available_at, requires, 100, max_attempts, updated_at, updated_at
  FROM transcoding_jobs WHERE status = 'queued' ORDER BY id;

DROP TABLE callback_receipts;
DROP TABLE task_leases;
DROP TABLE transcoding_tasks;
DROP TABLE transcoding_attempts;
ALTER TABLE attempts_new RENAME TO transcoding_attempts;
ALTER TABLE receipts_new RENAME TO callback_receipts;
ALTER TABLE tasks_new RENAME TO transcoding_tasks;
ALTER TABLE leases_new RENAME TO task_leases;

CREATE INDEX attempts_by_job ON transcoding_attempts (job_id, id);
CREATE INDEX attempts_to_sweep ON transcoding_attempts (ended_at) WHERE swept_at IS NULL AND outcome <> 'completed';
CREATE INDEX task_leases_by_task ON task_leases (task_id, id);

-- The queue of workers that take tasks. Level with a job that waits, what has begun is first.
CREATE INDEX tasks_queued
  ON transcoding_tasks (max(priority, 10) DESC, queue_position, available_at, attempt_id IS NULL, id) WHERE status = 'queued';
CREATE INDEX tasks_queued_of_tenant
  ON transcoding_tasks (tenant_id, priority DESC, attempt_id IS NULL, iif(attempt_id IS NULL, available_at, job_id), job_id, rank, id)
  WHERE status = 'queued';
-- That of workers that take jobs as a whole.
CREATE INDEX tasks_unbegun
  ON transcoding_tasks (max(priority, 10) DESC, queue_position, available_at, id) WHERE status = 'queued' AND attempt_id IS NULL;
CREATE INDEX tasks_unbegun_of_tenant
  ON transcoding_tasks (tenant_id, priority DESC, available_at, job_id) WHERE status = 'queued' AND attempt_id IS NULL;
-- Jobs that a worker plans next to a long task.
CREATE INDEX tasks_early
  ON transcoding_tasks (max(priority, 10) DESC, queue_position, available_at, id) WHERE status = 'queued' AND plans_early = 1;
-- What precedes the queue: what a viewer waits for, then the rest.
CREATE INDEX tasks_urgent
  ON transcoding_tasks ((service_class = 'normal') - (service_class = 'requested'), max(priority, 10) DESC, queue_position, available_at, id)
  WHERE status = 'queued' AND service_class <> 'normal';
-- What a worker may run next to a long task: also tasks that use one core.
CREATE INDEX tasks_light
  ON transcoding_tasks ((service_class = 'normal') - (service_class = 'requested'), max(priority, 10) DESC, queue_position, available_at, id)
  WHERE status = 'queued' AND (service_class <> 'normal' OR kind IN ('audio', 'images'));
CREATE INDEX tasks_turns ON transcoding_tasks (queue_position) WHERE status = 'queued';
CREATE INDEX tasks_turns_of_tenant ON transcoding_tasks (tenant_id, queue_position) WHERE status = 'queued';
CREATE INDEX tasks_leased ON transcoding_tasks (lease_expires_at) WHERE status = 'running';
CREATE INDEX tasks_by_attempt ON transcoding_tasks (attempt_id, status);
CREATE INDEX tasks_by_job ON transcoding_tasks (job_id, id);
CREATE INDEX tasks_by_tenant ON transcoding_tasks (tenant_id);

DROP INDEX jobs_queued;
DROP INDEX jobs_queued_of_tenant;
DROP INDEX jobs_turns;
DROP INDEX jobs_turns_of_tenant;
DROP INDEX jobs_early;
DROP INDEX jobs_leased;
ALTER TABLE transcoding_jobs DROP COLUMN queue_position;
ALTER TABLE transcoding_jobs DROP COLUMN available_at;
ALTER TABLE transcoding_jobs DROP COLUMN progressed_at;
ALTER TABLE transcoding_jobs DROP COLUMN lease_expires_at;
ALTER TABLE transcoding_jobs DROP COLUMN requires;
