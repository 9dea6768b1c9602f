-- The profile of the media that play while a job encodes them again, or after it failed or was canceled: `profile` and
-- `encoding_spec` are then those of the new media. Null: the media are of the job's own profile, or there are none.
ALTER TABLE transcoding_jobs ADD COLUMN media_profile TEXT;
