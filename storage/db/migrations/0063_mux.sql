-- What objects of Mux's API have and ours do not.

-- Until when the source of an asset can be downloaded through `master`.
CREATE TABLE mux_masters (
  asset_id INTEGER PRIMARY KEY REFERENCES assets (id) ON DELETE CASCADE,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  until INTEGER NOT NULL
) STRICT;
CREATE INDEX mux_masters_by_tenant ON mux_masters (tenant_id, asset_id);

-- Direct uploads, whose size and file name are not known before the first request with bytes. Then they have an upload of ours.
CREATE TABLE mux_uploads (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  -- The id in Mux's API.
  name TEXT NOT NULL UNIQUE,
  cors_origin TEXT NOT NULL,
  timeout_seconds INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  settings TEXT NOT NULL,
  canceled_at INTEGER,
  upload_id INTEGER,
  asset_id INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX mux_uploads_by_tenant ON mux_uploads (tenant_id, id);
CREATE INDEX mux_uploads_unused ON mux_uploads (tenant_id, expires_at) WHERE upload_id IS NULL;
CREATE INDEX mux_uploads_by_asset ON mux_uploads (asset_id) WHERE asset_id IS NOT NULL;

-- The form of deliveries. Types of events are always stored by our names.
ALTER TABLE webhook_endpoints ADD COLUMN format TEXT NOT NULL DEFAULT 'svc';

-- What live streams of Mux's API have and channels do not. The stream key is encrypted: Mux's responses contain it.
CREATE TABLE mux_streams (
  channel_id INTEGER PRIMARY KEY REFERENCES live_channels (id) ON DELETE CASCADE,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  stream_key TEXT NOT NULL,
  passthrough TEXT
) STRICT;
CREATE INDEX mux_streams_by_tenant ON mux_streams (tenant_id, channel_id);
-- Publishers may send the key alone.
CREATE INDEX live_channels_by_key ON live_channels (stream_key_hash) WHERE revoked_at IS NULL;
