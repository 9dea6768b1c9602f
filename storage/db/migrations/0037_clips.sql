-- A clip plays segments of another asset's media. Its own manifests are under media_prefix; the objects that shared_media
-- names are under shared_prefix, and stay there when that asset is deleted or encoded again. shared_bytes is the part of
-- storage_bytes that this asset counts for them: 0 while another asset does.
ALTER TABLE assets ADD COLUMN parent_asset_id INTEGER REFERENCES assets (id) ON DELETE SET NULL;
ALTER TABLE assets ADD COLUMN shared_prefix TEXT;
ALTER TABLE assets ADD COLUMN shared_media TEXT;
ALTER TABLE assets ADD COLUMN shared_bytes INTEGER NOT NULL DEFAULT 0;

CREATE INDEX assets_of_parent ON assets (parent_asset_id) WHERE parent_asset_id IS NOT NULL;
CREATE INDEX assets_of_shared_prefix ON assets (shared_prefix, id) WHERE shared_prefix IS NOT NULL;
CREATE INDEX assets_of_media_prefix ON assets (media_prefix) WHERE media_prefix IS NOT NULL;
