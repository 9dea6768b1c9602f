-- How much of a tenant's storage is uploaded files. The rest is what was encoded from them. Clients may declare any size
-- for an asset; above 2^53 - 1 the sum could not be read.
ALTER TABLE tenants ADD COLUMN source_bytes INTEGER NOT NULL DEFAULT 0;

UPDATE tenants SET source_bytes = (
  SELECT CAST(min(9007199254740991, total(min(source_bytes, storage_bytes))) AS INTEGER) FROM assets
  WHERE assets.tenant_id = tenants.id AND source_deleted_at IS NULL
);

CREATE TRIGGER source_bytes_of_new_asset AFTER INSERT ON assets
WHEN new.source_deleted_at IS NULL AND min(new.source_bytes, new.storage_bytes) > 0 BEGIN
  UPDATE tenants SET source_bytes = min(9007199254740991, source_bytes + min(new.source_bytes, new.storage_bytes))
  WHERE id = new.tenant_id;
END;
CREATE TRIGGER source_bytes_of_changed_asset AFTER UPDATE OF source_bytes, storage_bytes, source_deleted_at ON assets BEGIN
  UPDATE tenants SET source_bytes = max(0, min(9007199254740991, source_bytes
    + CASE WHEN new.source_deleted_at IS NULL THEN min(new.source_bytes, new.storage_bytes) ELSE 0 END
    - CASE WHEN old.source_deleted_at IS NULL THEN min(old.source_bytes, old.storage_bytes) ELSE 0 END))
  WHERE id = new.tenant_id;
END;
-- The assets of a tenant that is being deleted are not subtracted one by one.
CREATE TRIGGER source_bytes_of_deleted_asset AFTER DELETE ON assets
WHEN old.source_deleted_at IS NULL AND min(old.source_bytes, old.storage_bytes) > 0 BEGIN
  UPDATE tenants SET source_bytes = max(0, source_bytes - min(old.source_bytes, old.storage_bytes))
  WHERE id = old.tenant_id AND delete_requested_at IS NULL;
END;
