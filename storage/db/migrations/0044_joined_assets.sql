-- A job that joins the media of several assets: where they are, in order. Only workers that support it lease such a job.
ALTER TABLE transcoding_jobs ADD COLUMN joined TEXT;
