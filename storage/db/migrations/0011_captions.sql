-- Whether a job fails that cannot make the captions which its upload asked for.
ALTER TABLE uploads ADD COLUMN captions_required INTEGER NOT NULL DEFAULT 0;
-- Why captions are not there: an object of messages by language.
ALTER TABLE transcoding_jobs ADD COLUMN caption_errors TEXT;
