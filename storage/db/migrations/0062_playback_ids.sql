-- Further ids under which an asset or a live channel is played, each with a policy of its own. The first one of an asset is
-- its `vid_` id, and has no row here.
CREATE TABLE playback_ids (
  id TEXT PRIMARY KEY,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  asset_id INTEGER REFERENCES assets (id) ON DELETE CASCADE,
  channel_id INTEGER REFERENCES live_channels (id) ON DELETE CASCADE,
  policy TEXT NOT NULL CHECK (policy IN ('public', 'signed')),
  created_at INTEGER NOT NULL,
  CHECK ((asset_id IS NULL) <> (channel_id IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX playback_ids_by_asset ON playback_ids (asset_id, created_at, id) WHERE asset_id IS NOT NULL;
CREATE INDEX playback_ids_by_channel ON playback_ids (channel_id, created_at, id) WHERE channel_id IS NOT NULL;
CREATE INDEX playback_ids_by_tenant ON playback_ids (tenant_id, id);

-- A copy in the row of the asset, which lists read and requests for media have in memory.
ALTER TABLE assets ADD COLUMN playback_ids TEXT NOT NULL DEFAULT '[]';
CREATE TRIGGER playback_ids_insert AFTER INSERT ON playback_ids WHEN NEW.asset_id IS NOT NULL BEGIN
  UPDATE assets SET playback_ids = (
    SELECT json_group_array(json_object('id', id, 'policy', policy))
    FROM (SELECT id, policy FROM playback_ids WHERE asset_id = NEW.asset_id ORDER BY created_at, id)
  ) WHERE id = NEW.asset_id;
END;
CREATE TRIGGER playback_ids_delete AFTER DELETE ON playback_ids WHEN OLD.asset_id IS NOT NULL BEGIN
  UPDATE assets SET playback_ids = (
    SELECT json_group_array(json_object('id', id, 'policy', policy))
    FROM (SELECT id, policy FROM playback_ids WHERE asset_id = OLD.asset_id ORDER BY created_at, id)
  ) WHERE id = OLD.asset_id;
END;
