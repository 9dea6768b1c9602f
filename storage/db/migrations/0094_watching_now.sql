-- Sessions that were seen lately: viewers at this moment, by video.
CREATE INDEX playback_sessions_by_last ON playback_sessions (tenant_id, last_at, asset_id);

-- How many sessions were seen in each minute since the epoch; only the last hours are kept.
CREATE TABLE analytics_minutes (
  tenant_id INTEGER NOT NULL,
  minute INTEGER NOT NULL,
  sessions INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, minute)
) STRICT, WITHOUT ROWID;
