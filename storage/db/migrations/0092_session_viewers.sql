-- The viewer of a session, a keyed hash: what is stored of a viewer is found by it, for an export or an erasure.
ALTER TABLE playback_sessions ADD COLUMN viewer TEXT;
-- The first viewer that it named, else the hash of the session itself, which events without a viewer have.
UPDATE playback_sessions SET viewer = coalesce((
  SELECT viewer FROM playback_events AS event
  WHERE event.asset_id = playback_sessions.asset_id AND event.session = playback_sessions.session
    AND event.viewer <> event.session LIMIT 1
), session);
CREATE INDEX playback_sessions_by_viewer ON playback_sessions (tenant_id, viewer);
