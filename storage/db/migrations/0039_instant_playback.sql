-- Of a playable asset that is not encoded completely: whether the rest is being encoded, or was given up.
ALTER TABLE assets ADD COLUMN encoding TEXT CHECK (encoding IN ('partial', 'failed'));
-- Null: the server's setting applies.
ALTER TABLE tenants ADD COLUMN early_playback INTEGER CHECK (early_playback IN (0, 1));
-- Of the asset when the job was queued: a worker plans such jobs next to a long task.
ALTER TABLE transcoding_jobs ADD COLUMN early_playback INTEGER NOT NULL DEFAULT 0 CHECK (early_playback IN (0, 1));
CREATE INDEX jobs_early ON transcoding_jobs (max(priority, 10) DESC, turn, available_at, id)
  WHERE status = 'queued' AND early_playback = 1;
-- The video renditions that a chunk encodes; null: all.
ALTER TABLE transcoding_tasks ADD COLUMN renditions TEXT;
-- Whether the task publishes the asset before everything is encoded.
ALTER TABLE transcoding_tasks ADD COLUMN publishes INTEGER NOT NULL DEFAULT 0 CHECK (publishes IN (0, 1));
-- Order among the tasks of a job.
ALTER TABLE transcoding_tasks ADD COLUMN rank INTEGER NOT NULL DEFAULT 0;
DROP INDEX tasks_queued_of_tenant;
CREATE INDEX tasks_queued_of_tenant ON transcoding_tasks (tenant_id, priority DESC, job_id, rank, id) WHERE status = 'queued';
