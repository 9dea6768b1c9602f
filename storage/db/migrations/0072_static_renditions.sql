-- Renditions of an asset that are delivered as one file. A file consists of the segments of the asset, and is put together when
-- it is delivered, so there is nothing else to store: the row says that it is wanted.
CREATE TABLE static_renditions (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  asset_id INTEGER NOT NULL REFERENCES assets (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (asset_id, name)
) STRICT;
CREATE INDEX static_renditions_by_tenant ON static_renditions (tenant_id, id);
