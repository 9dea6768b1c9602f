-- Viewer analytics. None of these rows refers to its asset: ids are never given twice, so what is left of a deleted one
-- cannot be reached, and the sums of its tenant stay what they were. `asset_id` 0 stands for all of a tenant. An hour is
-- a number of whole hours since the epoch; sessions and viewers are keyed hashes.

-- What was told, once: its key knows a beacon that comes again. The oldest are removed in the order of the ids.
CREATE TABLE playback_events (
  id INTEGER PRIMARY KEY,
  tenant_id INTEGER NOT NULL,
  asset_id INTEGER NOT NULL,
  session TEXT NOT NULL,
  viewer TEXT NOT NULL,
  event TEXT NOT NULL,
  -- -1 where none was told: NULLs would all be different from one another.
  position_ms INTEGER NOT NULL,
  watched_ms INTEGER NOT NULL,
  -- When it happened by the client's clock, and by ours as far as that can be.
  told_at INTEGER NOT NULL,
  at INTEGER NOT NULL,
  received_at INTEGER NOT NULL,
  UNIQUE (asset_id, session, told_at, event, position_ms)
) STRICT;

CREATE TABLE playback_sessions (
  id INTEGER PRIMARY KEY,
  tenant_id INTEGER NOT NULL,
  asset_id INTEGER NOT NULL,
  session TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  -- When it began to count: at its first `play`.
  played_at INTEGER,
  watched_ms INTEGER NOT NULL,
  -- How far it came, in hundredths of the duration.
  reached INTEGER NOT NULL,
  completed INTEGER NOT NULL,
  errors INTEGER NOT NULL,
  startup_ms INTEGER,
  received_at INTEGER NOT NULL,
  UNIQUE (asset_id, session)
) STRICT;

-- Plays and completions stand in the hour of the play, watch time and errors in their own.
CREATE TABLE analytics_hours (
  tenant_id INTEGER NOT NULL,
  asset_id INTEGER NOT NULL,
  hour INTEGER NOT NULL,
  plays INTEGER NOT NULL,
  completions INTEGER NOT NULL,
  watched_ms INTEGER NOT NULL,
  errors INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, asset_id, hour)
) STRICT, WITHOUT ROWID;
CREATE INDEX analytics_by_hour ON analytics_hours (tenant_id, hour, asset_id, plays, watched_ms) WHERE asset_id > 0;

-- Sessions that were played in that hour, by how far they came.
CREATE TABLE analytics_reach (
  asset_id INTEGER NOT NULL,
  hour INTEGER NOT NULL,
  reached INTEGER NOT NULL,
  sessions INTEGER NOT NULL,
  PRIMARY KEY (asset_id, hour, reached)
) STRICT, WITHOUT ROWID;

-- Who played in which hour.
CREATE TABLE analytics_viewers (
  id INTEGER PRIMARY KEY,
  tenant_id INTEGER NOT NULL,
  asset_id INTEGER NOT NULL,
  viewer TEXT NOT NULL,
  hour INTEGER NOT NULL,
  UNIQUE (tenant_id, asset_id, viewer, hour)
) STRICT;

-- How many viewers of an hour had played in which earlier one last; -1 for never. Those of a range whose last play was
-- before it are all its viewers, each counted once: sets of any range come from sums, exactly.
CREATE TABLE analytics_returns (
  tenant_id INTEGER NOT NULL,
  asset_id INTEGER NOT NULL,
  hour INTEGER NOT NULL,
  last_hour INTEGER NOT NULL,
  viewers INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, asset_id, hour, last_hour)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER analytics_viewers_insert AFTER INSERT ON analytics_viewers BEGIN
  INSERT INTO analytics_returns
    VALUES (new.tenant_id, new.asset_id, new.hour, coalesce((
      SELECT max(hour) FROM analytics_viewers
      WHERE tenant_id = new.tenant_id AND asset_id = new.asset_id AND viewer = new.viewer AND hour < new.hour
    ), -1), 1)
    ON CONFLICT DO UPDATE SET viewers = viewers + 1;
  -- A play that is told of late comes between two that are known.
  UPDATE analytics_returns SET viewers = viewers - 1
    WHERE tenant_id = new.tenant_id AND asset_id = new.asset_id AND hour = (
      SELECT min(hour) FROM analytics_viewers
      WHERE tenant_id = new.tenant_id AND asset_id = new.asset_id AND viewer = new.viewer AND hour > new.hour
    ) AND last_hour = coalesce((
      SELECT max(hour) FROM analytics_viewers
      WHERE tenant_id = new.tenant_id AND asset_id = new.asset_id AND viewer = new.viewer AND hour < new.hour
    ), -1);
  INSERT INTO analytics_returns
    SELECT new.tenant_id, new.asset_id, min(hour), new.hour, 1 FROM analytics_viewers
    WHERE tenant_id = new.tenant_id AND asset_id = new.asset_id AND viewer = new.viewer AND hour > new.hour
    HAVING min(hour) IS NOT NULL
    ON CONFLICT DO UPDATE SET viewers = viewers + 1;
END;

CREATE TABLE traffic_anomalies (
  tenant_id INTEGER NOT NULL,
  metric TEXT NOT NULL,
  window_start INTEGER NOT NULL,
  baseline REAL NOT NULL,
  observed INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, metric, window_start)
) STRICT, WITHOUT ROWID;
