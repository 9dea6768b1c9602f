-- When the asset is to be deleted; null: never.
ALTER TABLE assets ADD COLUMN expires_at INTEGER;
CREATE INDEX assets_by_expiry ON assets (expires_at) WHERE expires_at IS NOT NULL;
-- When the source was deleted; the asset plays on. `source_bytes` remains what the source had.
ALTER TABLE assets ADD COLUMN source_deleted_at INTEGER;
