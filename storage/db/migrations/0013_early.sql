-- Plays as soon as one rendition is whole.
ALTER TABLE assets ADD COLUMN early_playback INTEGER NOT NULL DEFAULT 0 CHECK (early_playback IN (0, 1));
-- When the job published what played already; `video.asset.ready` was told then.
ALTER TABLE transcoding_jobs ADD COLUMN published_at INTEGER;
