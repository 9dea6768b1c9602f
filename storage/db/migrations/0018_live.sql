-- Channels of a tenant's own live gateway. Of a stream key only the hash is here. `revision` grows with every change
-- of what the gateway is answered by, whoever makes it: what is kept in memory asks for what is newer than it has seen.
CREATE TABLE live_channels (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  channel TEXT NOT NULL,
  name TEXT NOT NULL,
  playback_policy TEXT NOT NULL CHECK (playback_policy IN ('public', 'signed')),
  stream_key_hash TEXT NOT NULL,
  publisher TEXT,
  revision INTEGER NOT NULL DEFAULT 0,
  revoked_at INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX live_channels_live ON live_channels (channel) WHERE revoked_at IS NULL;
CREATE INDEX live_channels_by_name ON live_channels (channel);
CREATE INDEX live_channels_by_tenant ON live_channels (tenant_id, id);
CREATE INDEX live_channels_by_revision ON live_channels (revision, id);
CREATE TRIGGER live_channels_insert AFTER INSERT ON live_channels BEGIN
  UPDATE live_channels SET revision = (SELECT max(revision) + 1 FROM live_channels) WHERE id = new.id;
END;
CREATE TRIGGER live_channels_update AFTER UPDATE OF playback_policy, stream_key_hash, publisher, revoked_at
ON live_channels BEGIN
  UPDATE live_channels SET revision = (SELECT max(revision) + 1 FROM live_channels) WHERE id = new.id;
END;
CREATE TRIGGER live_channels_suspend AFTER UPDATE OF status ON tenants WHEN old.status <> new.status BEGIN
  UPDATE live_channels SET revision = (SELECT max(revision) + 1 FROM live_channels) WHERE tenant_id = new.id;
END;
