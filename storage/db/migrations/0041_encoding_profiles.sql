-- Encoding profiles: of a tenant, or without one the operator's, which all tenants can use. The definition is complete:
-- values that the client left out are stored with their default of that time.
CREATE TABLE encoding_profiles (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER REFERENCES tenants (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  -- Counts changes of the definition and of the watermark's image.
  version INTEGER NOT NULL DEFAULT 1,
  definition TEXT NOT NULL,
  -- SHA-256 of the watermark's image.
  watermark TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX encoding_profiles_by_name ON encoding_profiles (coalesce(tenant_id, 0), name);
CREATE INDEX encoding_profiles_by_tenant ON encoding_profiles (tenant_id);
CREATE INDEX encoding_profiles_by_watermark ON encoding_profiles (watermark) WHERE watermark IS NOT NULL;

-- Images of watermarks, by their content: profiles and queued jobs refer to them.
CREATE TABLE watermarks (
  sha256 TEXT PRIMARY KEY,
  -- Base64.
  image TEXT NOT NULL,
  -- When a profile or a job last began to refer to it.
  used_at INTEGER NOT NULL
) STRICT;

ALTER TABLE tenants ADD COLUMN default_encoding_profile TEXT;
-- The profile that was asked for; null: the tenant's default.
ALTER TABLE assets ADD COLUMN encoding_profile TEXT;
-- Renditions of audio of an asset with video, as in `renditions`.
ALTER TABLE assets ADD COLUMN audio_renditions TEXT NOT NULL DEFAULT '[]';
-- What the profile required when the job was queued; null: the built-in default.
ALTER TABLE transcoding_jobs ADD COLUMN encoding_spec TEXT;

-- Media that newer ones have replaced, and that players may still request.
CREATE TABLE replaced_media (
  media_prefix TEXT PRIMARY KEY,
  asset_id INTEGER NOT NULL REFERENCES assets (id) ON DELETE CASCADE,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX replaced_media_by_asset ON replaced_media (asset_id);
CREATE INDEX replaced_media_by_expiry ON replaced_media (expires_at);
