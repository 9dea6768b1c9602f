-- The job whose upload, or channel, requested the captions: it shows why they are missing. Null: they were generated on request.
ALTER TABLE caption_jobs ADD COLUMN transcoding_job_id INTEGER REFERENCES transcoding_jobs (id) ON DELETE SET NULL;
CREATE INDEX caption_jobs_requested ON caption_jobs (transcoding_job_id) WHERE transcoding_job_id IS NOT NULL;
