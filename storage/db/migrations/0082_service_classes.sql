-- Tasks are in named classes of service, instead of an urgency whose meaning depended on the rank.
ALTER TABLE transcoding_tasks ADD COLUMN service_class TEXT NOT NULL DEFAULT 'normal'
  CHECK (service_class IN ('requested', 'first', 'ahead', 'abandoned', 'normal'));
UPDATE transcoding_tasks SET service_class =
  CASE WHEN urgency = 2 THEN 'requested' WHEN rank < 0 THEN 'abandoned' WHEN rank > 0 THEN 'ahead' ELSE 'first' END
  WHERE urgency > 0;
UPDATE transcoding_tasks SET rank = 0 WHERE rank < 0;

DROP INDEX tasks_urgent;
DROP INDEX tasks_light;
ALTER TABLE transcoding_tasks DROP COLUMN urgency;

-- The number by which the fair queue orders jobs, tasks and captions.
ALTER TABLE transcoding_jobs RENAME COLUMN turn TO queue_position;
ALTER TABLE transcoding_tasks RENAME COLUMN turn TO queue_position;
ALTER TABLE caption_jobs RENAME COLUMN turn TO queue_position;

-- What precedes the queue: what a viewer waits for, then the rest.
CREATE INDEX tasks_urgent
  ON transcoding_tasks ((service_class = 'normal') - (service_class = 'requested'), max(priority, 10) DESC, queue_position, available_at, id)
  WHERE status = 'queued' AND service_class <> 'normal';
-- What a worker may run next to a long task: also tasks that use one core.
CREATE INDEX tasks_light
  ON transcoding_tasks ((service_class = 'normal') - (service_class = 'requested'), max(priority, 10) DESC, queue_position, available_at, id)
  WHERE status = 'queued' AND (service_class <> 'normal' OR kind IN ('audio', 'images'));
