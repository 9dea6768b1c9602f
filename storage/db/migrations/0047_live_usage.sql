-- Milliseconds of media that publishers sent: of a tenant, and of its calendar months.
ALTER TABLE tenants ADD COLUMN live_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_months ADD COLUMN live_ms INTEGER NOT NULL DEFAULT 0;

-- What a channel received and how many watched it, by minute since the epoch. Only minutes in which it was live have a row.
-- No foreign keys: the rows are added from memory, and a deleted tenant must not make those of others fail.
CREATE TABLE live_minutes (
  tenant_id INTEGER NOT NULL,
  channel_id INTEGER NOT NULL,
  minute INTEGER NOT NULL,
  media_ms INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  -- The most at once.
  viewers INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, channel_id, minute)
) STRICT, WITHOUT ROWID;
CREATE INDEX live_minutes_by_minute ON live_minutes (minute);

-- Views of live channels are in the tables of views too: `asset_id` is the negative id of the channel. The deletion of old
-- sums finds them by hour, as those of assets.
CREATE INDEX analytics_live_by_hour ON analytics_hours (tenant_id, hour, asset_id, plays, watched_ms) WHERE asset_id < 0;
