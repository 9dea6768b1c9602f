-- Where a session came from: a country by a header of the proxy in front, and the host of the page with the player. Empty where
-- that is unknown; null in sessions of earlier versions, which are in no sums of these.
ALTER TABLE playback_sessions ADD COLUMN country TEXT;
ALTER TABLE playback_sessions ADD COLUMN referrer TEXT;

-- Sums by country and by referrer. `asset_id` 0 stands for all of a tenant, and the referrer '*' for those beyond the most that a
-- day may have.
CREATE TABLE analytics_origins (
  tenant_id INTEGER NOT NULL,
  asset_id INTEGER NOT NULL,
  hour INTEGER NOT NULL,
  kind TEXT NOT NULL,
  value TEXT NOT NULL,
  plays INTEGER NOT NULL,
  watched_ms INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, asset_id, hour, kind, value)
) STRICT, WITHOUT ROWID;

-- The referrers that have sums of their own, by days since the epoch: anyone can report any host, so their number is limited.
CREATE TABLE analytics_referrers (
  tenant_id INTEGER NOT NULL,
  asset_id INTEGER NOT NULL,
  day INTEGER NOT NULL,
  referrer TEXT NOT NULL,
  PRIMARY KEY (tenant_id, asset_id, day, referrer)
) STRICT, WITHOUT ROWID;
