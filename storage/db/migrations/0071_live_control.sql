-- A channel that is not enabled refuses publishers. How long a broadcast waits for a publisher whose connection broke, and
-- how long one may last; null: as long as it is published. `ended_stream` is the name of the broadcast that was ended
-- through the API: the server that receives it may be another one.
ALTER TABLE live_channels ADD COLUMN enabled INTEGER NOT NULL DEFAULT 1;
ALTER TABLE live_channels ADD COLUMN reconnect_seconds INTEGER NOT NULL DEFAULT 30;
ALTER TABLE live_channels ADD COLUMN max_duration_seconds INTEGER;
ALTER TABLE live_channels ADD COLUMN ended_stream TEXT;
DROP TRIGGER live_channels_update;
CREATE TRIGGER live_channels_update AFTER UPDATE OF playback_policy, stream_key_hash, publisher, revoked_at, enabled,
  max_duration_seconds, ended_stream
ON live_channels BEGIN
  UPDATE live_channels SET revision = (SELECT max(revision) + 1 FROM live_channels) WHERE id = new.id;
END;
