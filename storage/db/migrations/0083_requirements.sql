-- What a worker must announce to run a job or a task: {capability: least version}; null: nothing.
ALTER TABLE transcoding_jobs ADD COLUMN requires TEXT;
ALTER TABLE transcoding_tasks ADD COLUMN requires TEXT;
-- The same for the parts of a job; null: it has none.
ALTER TABLE transcoding_jobs ADD COLUMN parts_require TEXT;

UPDATE transcoding_jobs SET requires = json_object('clips', coalesce(clip ->> '$.version', 1))
  WHERE status IN ('queued', 'running') AND clip IS NOT NULL;
UPDATE transcoding_jobs SET requires = json_object('joins', 1)
  WHERE status IN ('queued', 'running') AND joined IS NOT NULL;
UPDATE transcoding_jobs SET parts_require = json_object('tasks', iif(
    coalesce(json_array_length(encoding_spec, '$.video.additional'), 0) > 0
    OR coalesce(json_array_length(encoding_spec, '$.video.original.codecs'), 0) > 1, 3, 1))
  WHERE status IN ('queued', 'running') AND clip IS NULL AND joined IS NULL;
UPDATE transcoding_tasks
  SET requires = (SELECT parts_require FROM transcoding_jobs job WHERE job.id = transcoding_tasks.job_id)
  WHERE status IN ('waiting', 'queued', 'running') AND kind IN ('chunk', 'images');
