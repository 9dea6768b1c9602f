-- The segments of a clip keep the times of the asset that they are from. An added track has the times of the media next to which it
-- plays: where these begin, in seconds.
ALTER TABLE audio_tracks ADD COLUMN start_seconds REAL NOT NULL DEFAULT 0;
