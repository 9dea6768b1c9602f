-- Audio tracks of assets: added ones, which have media of their own, and what was changed of those of the source, which are named
-- by their rendition. Manifests are stored without added tracks; these are inserted when a manifest is delivered.
CREATE TABLE audio_tracks (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  asset_id INTEGER NOT NULL REFERENCES assets (id) ON DELETE CASCADE,
  -- Of the source's track: `audio`, `audio-2` …; null for an added one.
  rendition TEXT,
  language TEXT,
  name TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('main', 'alternate', 'commentary', 'dub', 'description')),
  is_default INTEGER NOT NULL DEFAULT 0,
  -- Of the source's: not played any more.
  is_removed INTEGER NOT NULL DEFAULT 0,
  status TEXT NOT NULL CHECK (status IN ('processing', 'ready', 'failed')),
  error_code TEXT,
  error_message TEXT,
  -- The uploaded file, until it is encoded.
  source_key TEXT,
  -- Of the media of a ready track, or those of the attempt that runs.
  prefix TEXT,
  bytes INTEGER NOT NULL DEFAULT 0,
  -- Seconds: those of the asset.
  length_seconds REAL NOT NULL DEFAULT 0,
  media TEXT,
  attempts INTEGER NOT NULL DEFAULT 0,
  available_at INTEGER NOT NULL DEFAULT 0,
  claim_key TEXT,
  lease_hash TEXT,
  lease_expires_at INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (asset_id, rendition)
) STRICT;
CREATE INDEX audio_tracks_by_tenant ON audio_tracks (tenant_id, id);
CREATE INDEX audio_tracks_queue ON audio_tracks (available_at, id) WHERE status = 'processing';
