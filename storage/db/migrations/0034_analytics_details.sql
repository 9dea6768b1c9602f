-- The class of the device that a session was played on; null for sessions of earlier versions, which are in no details.
ALTER TABLE playback_sessions ADD COLUMN device TEXT;
-- When the current stall began; null while it plays.
ALTER TABLE playback_sessions ADD COLUMN stalled_at INTEGER;

-- The sums of analytics_hours by class of device, with stalls. `asset_id` 0 stands for all of a tenant.
CREATE TABLE analytics_devices (
  tenant_id INTEGER NOT NULL,
  asset_id INTEGER NOT NULL,
  hour INTEGER NOT NULL,
  device TEXT NOT NULL,
  plays INTEGER NOT NULL,
  completions INTEGER NOT NULL,
  watched_ms INTEGER NOT NULL,
  errors INTEGER NOT NULL,
  stalls INTEGER NOT NULL,
  stalled_ms INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, asset_id, hour, device)
) STRICT, WITHOUT ROWID;

-- Startup times of sessions, by logarithmic bucket: percentiles of any range come from sums.
CREATE TABLE analytics_startups (
  tenant_id INTEGER NOT NULL,
  asset_id INTEGER NOT NULL,
  hour INTEGER NOT NULL,
  bucket INTEGER NOT NULL,
  sessions INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, asset_id, hour, bucket)
) STRICT, WITHOUT ROWID;

-- Workers that asked for jobs. A worker that is not seen for a week is removed.
CREATE TABLE workers (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  worker_id TEXT NOT NULL UNIQUE,
  version TEXT,
  first_seen_at INTEGER NOT NULL,
  last_seen_at INTEGER NOT NULL
) STRICT;
CREATE INDEX workers_by_age ON workers (last_seen_at);
