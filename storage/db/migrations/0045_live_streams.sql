-- What vodbox itself does with a stream that is published to a channel. `dvr_seconds`: how far viewers can seek back.
-- `takeover`: a second publisher replaces the first one; otherwise it is refused. `encoding_profile` null: passthrough.
ALTER TABLE live_channels ADD COLUMN record INTEGER NOT NULL DEFAULT 1;
ALTER TABLE live_channels ADD COLUMN dvr_seconds INTEGER NOT NULL DEFAULT 3600;
ALTER TABLE live_channels ADD COLUMN low_latency INTEGER NOT NULL DEFAULT 1;
ALTER TABLE live_channels ADD COLUMN takeover INTEGER NOT NULL DEFAULT 0;
ALTER TABLE live_channels ADD COLUMN encoding_profile TEXT;

-- Broadcasts of the embedded gateway, from the first frame on. `name` is that of its folder on the server that receives it,
-- which updates `updated_at` while the stream runs. `finished_at`: the recording is an asset, or there is none.
CREATE TABLE live_streams (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  channel_id INTEGER NOT NULL REFERENCES live_channels (id) ON DELETE CASCADE,
  name TEXT NOT NULL UNIQUE,
  recorded INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  ended_at INTEGER,
  finished_at INTEGER,
  asset_id INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX live_streams_running ON live_streams (channel_id) WHERE ended_at IS NULL;
CREATE INDEX live_streams_unfinished ON live_streams (id) WHERE finished_at IS NULL;
CREATE INDEX live_streams_by_channel ON live_streams (channel_id, id);
CREATE INDEX live_streams_by_tenant ON live_streams (tenant_id, id);
