-- When the deletion of a tenant was requested. Its rows and objects are deleted in the background; its own row is last.
ALTER TABLE tenants ADD COLUMN delete_requested_at INTEGER;
CREATE INDEX tenants_deleting ON tenants (id) WHERE delete_requested_at IS NOT NULL;

-- Each is a foreign key: without an index, deleting a tenant reads the whole table.
CREATE INDEX uploads_by_tenant ON uploads (tenant_id);
CREATE INDEX subtitles_by_tenant ON subtitles (tenant_id);
CREATE INDEX tracks_by_tenant ON tracks (tenant_id);
CREATE INDEX pairing_codes_by_tenant ON pairing_codes (tenant_id);
CREATE INDEX webhook_deliveries_by_tenant ON webhook_deliveries (tenant_id);
CREATE INDEX ingest_batches_by_tenant ON ingest_batches (tenant_id);
CREATE INDEX ingest_uploads_by_tenant ON ingest_uploads (tenant_id);
CREATE INDEX webhook_endpoints_of_tenant ON webhook_endpoints (tenant_id);
