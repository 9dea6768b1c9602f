-- For lists of a tenant's assets in each order, with any filters: whatever is filtered is in the index, so an asset that
-- does not match is skipped without reading its row.
DROP INDEX assets_by_tenant;
CREATE INDEX assets_by_tenant ON assets (tenant_id, id, playback_status, input_status, playback_policy, collection_id,
  created_at);
CREATE INDEX assets_by_title ON assets (tenant_id, title COLLATE NOCASE, id, playback_status, input_status,
  playback_policy, collection_id, created_at);
CREATE INDEX assets_by_duration ON assets (tenant_id, duration_seconds, id, playback_status, input_status,
  playback_policy, collection_id, created_at);
CREATE INDEX assets_by_size ON assets (tenant_id, storage_bytes, id, playback_status, input_status, playback_policy,
  collection_id, created_at);
