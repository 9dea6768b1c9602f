-- Other RTMP servers to which the broadcasts of a channel are sent. `stream_key` is encrypted.
CREATE TABLE simulcast_targets (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  channel_id INTEGER NOT NULL REFERENCES live_channels (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  url TEXT NOT NULL,
  stream_key TEXT NOT NULL,
  enabled INTEGER NOT NULL DEFAULT 1,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX simulcast_targets_by_channel ON simulcast_targets (channel_id, id);
CREATE INDEX simulcast_targets_by_tenant ON simulcast_targets (tenant_id);
