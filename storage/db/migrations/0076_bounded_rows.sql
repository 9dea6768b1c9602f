-- Responses that are stored for repeated requests: what they take is limited for each tenant. `counted_for` is the
-- tenant; records from before have none, and are gone after a day.
ALTER TABLE idempotency_records ADD COLUMN counted_for INTEGER;
ALTER TABLE tenants ADD COLUMN idempotency_bytes INTEGER NOT NULL DEFAULT 0;

CREATE TRIGGER idempotency_bytes_of_new AFTER INSERT ON idempotency_records WHEN new.counted_for IS NOT NULL BEGIN
  UPDATE tenants SET idempotency_bytes = idempotency_bytes + octet_length(new.body) WHERE id = new.counted_for;
END;
-- A key that is used again after a day.
CREATE TRIGGER idempotency_bytes_of_changed AFTER UPDATE OF body, counted_for ON idempotency_records BEGIN
  UPDATE tenants SET idempotency_bytes = max(0, idempotency_bytes - octet_length(old.body)) WHERE id = old.counted_for;
  UPDATE tenants SET idempotency_bytes = idempotency_bytes + octet_length(new.body) WHERE id = new.counted_for;
END;
-- The rows of a tenant that is being deleted are not subtracted one by one.
CREATE TRIGGER idempotency_bytes_of_deleted AFTER DELETE ON idempotency_records WHEN old.counted_for IS NOT NULL BEGIN
  UPDATE tenants SET idempotency_bytes = max(0, idempotency_bytes - octet_length(old.body))
  WHERE id = old.counted_for AND delete_requested_at IS NULL;
END;

-- Rows that are deleted when they are old.
CREATE INDEX pairing_codes_by_expiry ON pairing_codes (expires_at);
CREATE INDEX watermarks_by_use ON watermarks (used_at);

-- Those that are listed and counted, and the oldest of those that were deleted, however many others there are.
CREATE INDEX shares_live ON shares (asset_id, id) WHERE deleted_at IS NULL;
CREATE INDEX shares_ended ON shares (asset_id, deleted_at, id) WHERE deleted_at IS NOT NULL;

-- They are few, and are resent and listed without the others.
CREATE INDEX webhook_deliveries_failed ON webhook_deliveries (endpoint_id, id) WHERE status = 'failed';
