-- Tasks of a higher urgency precede the whole queue: 0 none, 1 what a viewer sees first, 2 what a viewer has requested.
ALTER TABLE transcoding_tasks ADD COLUMN urgency INTEGER NOT NULL DEFAULT 0;
CREATE INDEX tasks_urgent ON transcoding_tasks (urgency DESC, max(priority, 10) DESC, turn, available_at, id)
  WHERE status = 'queued' AND urgency > 0;
-- What a worker may run next to a long task: tasks that use one core, and urgent ones.
CREATE INDEX tasks_light ON transcoding_tasks (urgency DESC, max(priority, 10) DESC, turn, available_at, id)
  WHERE status = 'queued' AND (urgency > 0 OR kind IN ('audio', 'images'));
