-- Bytes that a tenant's rows take in the database, where clients choose their number and size: cues, tags, descriptions and
-- images of watermarks. They count as storage. Maintained by triggers, so that no way to write a row is forgotten.
ALTER TABLE tenants ADD COLUMN database_bytes INTEGER NOT NULL DEFAULT 0;
-- The value that bills have used since storage_changed_at.
ALTER TABLE tenants ADD COLUMN billed_database_bytes INTEGER NOT NULL DEFAULT 0;
CREATE INDEX tenants_with_unbilled_bytes ON tenants (id) WHERE database_bytes <> billed_database_bytes;

-- When a job last began to refer to the image; 0: never.
ALTER TABLE watermarks ADD COLUMN job_used_at INTEGER NOT NULL DEFAULT 0;
UPDATE watermarks SET job_used_at = used_at;

-- The images of watermarks that a tenant has uploaded and that are kept.
CREATE TABLE tenant_watermarks (
  tenant_id INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  sha256 TEXT NOT NULL REFERENCES watermarks (sha256) ON DELETE CASCADE,
  bytes INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, sha256)
) STRICT, WITHOUT ROWID;
CREATE INDEX tenant_watermarks_by_image ON tenant_watermarks (sha256);

INSERT INTO tenant_watermarks (tenant_id, sha256, bytes)
SELECT DISTINCT p.tenant_id, w.sha256,
  octet_length(w.image) / 4 * 3 - (CASE WHEN substr(w.image, -2) = '==' THEN 2 WHEN substr(w.image, -1) = '=' THEN 1 ELSE 0 END)
FROM encoding_profiles p JOIN watermarks w ON w.sha256 = p.watermark WHERE p.tenant_id IS NOT NULL;

UPDATE tenants SET database_bytes =
  (SELECT coalesce(sum(coalesce(octet_length(cues), 0) + coalesce(octet_length(storage_key), 0)
    + coalesce(octet_length(source), 0) + coalesce(octet_length(producer), 0)), 0) FROM tracks WHERE tenant_id = tenants.id)
  + (SELECT coalesce(sum((CASE WHEN tags = '{}' THEN 0 ELSE octet_length(tags) END)
    + coalesce(octet_length(description), 0)), 0) FROM assets WHERE tenant_id = tenants.id)
  + (SELECT coalesce(sum(coalesce(octet_length(description), 0)), 0) FROM collections WHERE tenant_id = tenants.id)
  + (SELECT coalesce(sum(bytes), 0) FROM tenant_watermarks WHERE tenant_id = tenants.id);

CREATE TRIGGER database_bytes_of_new_track AFTER INSERT ON tracks BEGIN
  UPDATE tenants SET database_bytes = database_bytes + coalesce(octet_length(new.cues), 0)
    + coalesce(octet_length(new.storage_key), 0) + coalesce(octet_length(new.source), 0) + coalesce(octet_length(new.producer), 0)
  WHERE id = new.tenant_id;
END;
CREATE TRIGGER database_bytes_of_changed_track AFTER UPDATE OF cues, storage_key, source, producer ON tracks BEGIN
  UPDATE tenants SET database_bytes = max(0, database_bytes
    + coalesce(octet_length(new.cues), 0) + coalesce(octet_length(new.storage_key), 0)
    + coalesce(octet_length(new.source), 0) + coalesce(octet_length(new.producer), 0)
    - coalesce(octet_length(old.cues), 0) - coalesce(octet_length(old.storage_key), 0)
    - coalesce(octet_length(old.source), 0) - coalesce(octet_length(old.producer), 0))
  WHERE id = new.tenant_id;
END;
-- The rows of a tenant that is being deleted are not subtracted one by one.
CREATE TRIGGER database_bytes_of_deleted_track AFTER DELETE ON tracks BEGIN
  UPDATE tenants SET database_bytes = max(0, database_bytes - coalesce(octet_length(old.cues), 0)
    - coalesce(octet_length(old.storage_key), 0) - coalesce(octet_length(old.source), 0) - coalesce(octet_length(old.producer), 0))
  WHERE id = old.tenant_id AND delete_requested_at IS NULL;
END;

CREATE TRIGGER database_bytes_of_new_asset AFTER INSERT ON assets
WHEN new.tags <> '{}' OR new.description IS NOT NULL BEGIN
  UPDATE tenants SET database_bytes = database_bytes
    + (CASE WHEN new.tags = '{}' THEN 0 ELSE octet_length(new.tags) END) + coalesce(octet_length(new.description), 0)
  WHERE id = new.tenant_id;
END;
CREATE TRIGGER database_bytes_of_changed_asset AFTER UPDATE OF tags, description ON assets BEGIN
  UPDATE tenants SET database_bytes = max(0, database_bytes
    + (CASE WHEN new.tags = '{}' THEN 0 ELSE octet_length(new.tags) END) + coalesce(octet_length(new.description), 0)
    - (CASE WHEN old.tags = '{}' THEN 0 ELSE octet_length(old.tags) END) - coalesce(octet_length(old.description), 0))
  WHERE id = new.tenant_id;
END;
CREATE TRIGGER database_bytes_of_deleted_asset AFTER DELETE ON assets
WHEN old.tags <> '{}' OR old.description IS NOT NULL BEGIN
  UPDATE tenants SET database_bytes = max(0, database_bytes
    - (CASE WHEN old.tags = '{}' THEN 0 ELSE octet_length(old.tags) END) - coalesce(octet_length(old.description), 0))
  WHERE id = old.tenant_id AND delete_requested_at IS NULL;
END;

CREATE TRIGGER database_bytes_of_new_collection AFTER INSERT ON collections WHEN new.description IS NOT NULL BEGIN
  UPDATE tenants SET database_bytes = database_bytes + octet_length(new.description) WHERE id = new.tenant_id;
END;
CREATE TRIGGER database_bytes_of_changed_collection AFTER UPDATE OF description ON collections BEGIN
  UPDATE tenants SET database_bytes = max(0, database_bytes
    + coalesce(octet_length(new.description), 0) - coalesce(octet_length(old.description), 0))
  WHERE id = new.tenant_id;
END;
CREATE TRIGGER database_bytes_of_deleted_collection AFTER DELETE ON collections WHEN old.description IS NOT NULL BEGIN
  UPDATE tenants SET database_bytes = max(0, database_bytes - octet_length(old.description))
  WHERE id = old.tenant_id AND delete_requested_at IS NULL;
END;

CREATE TRIGGER database_bytes_of_new_watermark AFTER INSERT ON tenant_watermarks BEGIN
  UPDATE tenants SET database_bytes = database_bytes + new.bytes WHERE id = new.tenant_id;
END;
CREATE TRIGGER database_bytes_of_deleted_watermark AFTER DELETE ON tenant_watermarks BEGIN
  UPDATE tenants SET database_bytes = max(0, database_bytes - old.bytes)
  WHERE id = old.tenant_id AND delete_requested_at IS NULL;
END;
