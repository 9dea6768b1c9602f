-- A job that cuts an exact clip: the prefix of the manifests of the whole segments around it, their paths below it, and
-- the range in them. Only workers that support it lease such a job.
ALTER TABLE transcoding_jobs ADD COLUMN clip TEXT;
