-- Days after which a tenant's sources and analytics are deleted; null: never.
ALTER TABLE tenants ADD COLUMN delete_sources_after_days INTEGER;
ALTER TABLE tenants ADD COLUMN delete_analytics_after_days INTEGER;
CREATE INDEX assets_by_source_age ON assets (tenant_id, ready_at, id) WHERE source_deleted_at IS NULL AND ready_at IS NOT NULL;

-- The program deletes too, without a caller: the kinds of actors are left to it.
CREATE TABLE audit_entries_new (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  created_at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  key_id INTEGER,
  tenant_id INTEGER,
  address TEXT NOT NULL,
  operator TEXT,
  method TEXT NOT NULL,
  route TEXT NOT NULL,
  target_type TEXT NOT NULL,
  target_id TEXT,
  fields TEXT NOT NULL,
  request_id TEXT NOT NULL
) STRICT;
INSERT INTO audit_entries_new SELECT * FROM audit_entries;
DROP TABLE audit_entries;
ALTER TABLE audit_entries_new RENAME TO audit_entries;
CREATE INDEX audit_by_tenant ON audit_entries (tenant_id, id);
CREATE INDEX audit_by_age ON audit_entries (created_at);
