-- How the player of a tenant looks: {accent_color, show_title, allow_download}. Absent members have their defaults.
ALTER TABLE tenants ADD COLUMN player TEXT NOT NULL DEFAULT '{}';
-- SHA-256 of the logo.
ALTER TABLE tenants ADD COLUMN logo TEXT;

CREATE TABLE tenant_logos (
  tenant_id INTEGER PRIMARY KEY REFERENCES tenants (id) ON DELETE CASCADE,
  sha256 TEXT NOT NULL,
  -- Base64.
  image TEXT NOT NULL,
  bytes INTEGER NOT NULL
) STRICT;

-- A logo is replaced by a deletion and an insertion.
CREATE TRIGGER database_bytes_of_new_logo AFTER INSERT ON tenant_logos BEGIN
  UPDATE tenants SET database_bytes = database_bytes + new.bytes WHERE id = new.tenant_id;
END;
CREATE TRIGGER database_bytes_of_deleted_logo AFTER DELETE ON tenant_logos BEGIN
  UPDATE tenants SET database_bytes = max(0, database_bytes - old.bytes)
  WHERE id = old.tenant_id AND delete_requested_at IS NULL;
END;
