-- Languages in which recordings are transcribed, as JSON: those of a channel apply to the streams that begin afterwards.
ALTER TABLE live_channels ADD COLUMN captions TEXT NOT NULL DEFAULT '[]';
ALTER TABLE live_streams ADD COLUMN captions TEXT NOT NULL DEFAULT '[]';
CREATE INDEX live_streams_by_asset ON live_streams (asset_id) WHERE asset_id IS NOT NULL;
