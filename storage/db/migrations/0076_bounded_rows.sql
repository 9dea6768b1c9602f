-- Responses that are stored for repeated requests: what they take is limited for each tenant. Records from before have no
-- tenant, are not counted, and are gone after a day.
ALTER TABLE idempotency_records ADD COLUMN tenant_id INTEGER;
ALTER TABLE tenants ADD COLUMN idempotency_bytes INTEGER NOT NULL DEFAULT 0;

CREATE TRIGGER idempotency_bytes_of_new AFTER INSERT ON idempotency_records WHEN new.tenant_id IS NOT NULL BEGIN
  UPDATE tenants SET idempotency_bytes = idempotency_bytes + octet_length(new.body) WHERE id = new.tenant_id;
END;
-- A key that is used again after a day.
CREATE TRIGGER idempotency_bytes_of_changed AFTER UPDATE OF body, tenant_id ON idempotency_records BEGIN
  UPDATE tenants SET idempotency_bytes = max(0, idempotency_bytes - octet_length(old.body)) WHERE id = old.tenant_id;
  UPDATE tenants SET idempotency_bytes = idempotency_bytes + octet_length(new.body) WHERE id = new.tenant_id;
END;
-- The rows of a tenant that is being deleted are not subtracted one by one.
CREATE TRIGGER idempotency_bytes_of_deleted AFTER DELETE ON idempotency_records WHEN old.tenant_id IS NOT NULL BEGIN
  UPDATE tenants SET idempotency_bytes = max(0, idempotency_bytes - octet_length(old.body))
  WHERE id = old.tenant_id AND delete_requested_at IS NULL;
END;

-- Rows that are deleted when they are old.
CREATE INDEX pairing_codes_by_expiry ON pairing_codes (expires_at);
CREATE INDEX watermarks_by_use ON watermarks (used_at);
