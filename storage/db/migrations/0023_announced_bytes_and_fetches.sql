-- Bytes that are announced and not yet stored, for the storage quota: a sum over the uploads of a large batch takes
-- milliseconds. Triggers keep the counters, in the transaction of whatever changes an upload or a batch.
ALTER TABLE ingest_batches ADD COLUMN announced_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tenants ADD COLUMN announced_bytes INTEGER NOT NULL DEFAULT 0;

-- Of uploads that are not aborted: a completed object counts until its batch is over.
UPDATE ingest_batches SET announced_bytes = s.bytes FROM (
  SELECT batch_id, sum(bytes_expected) AS bytes FROM ingest_uploads WHERE status <> 'aborted' GROUP BY batch_id
) AS s WHERE s.batch_id = ingest_batches.id AND ingest_batches.status = 'open';
UPDATE tenants SET announced_bytes = s.bytes FROM (
  SELECT tenant_id, sum(bytes) AS bytes FROM (
    SELECT tenant_id, bytes_expected AS bytes FROM uploads WHERE status = 'pending'
    UNION ALL
    SELECT tenant_id, announced_bytes AS bytes FROM ingest_batches WHERE status = 'open'
  ) GROUP BY tenant_id
) AS s WHERE s.tenant_id = tenants.id;

CREATE TRIGGER uploads_announce AFTER INSERT ON uploads WHEN new.status = 'pending' BEGIN
  UPDATE tenants SET announced_bytes = announced_bytes + new.bytes_expected WHERE id = new.tenant_id;
END;
CREATE TRIGGER uploads_announced AFTER UPDATE OF status, bytes_expected ON uploads
WHEN (old.status = 'pending' OR new.status = 'pending')
  AND (old.status <> new.status OR old.bytes_expected <> new.bytes_expected) BEGIN
  UPDATE tenants SET announced_bytes = announced_bytes
    + CASE WHEN new.status = 'pending' THEN new.bytes_expected ELSE 0 END
    - CASE WHEN old.status = 'pending' THEN old.bytes_expected ELSE 0 END
  WHERE id = new.tenant_id;
END;
CREATE TRIGGER uploads_unannounce AFTER DELETE ON uploads WHEN old.status = 'pending' BEGIN
  UPDATE tenants SET announced_bytes = announced_bytes - old.bytes_expected WHERE id = old.tenant_id;
END;

CREATE TRIGGER ingest_uploads_announce AFTER INSERT ON ingest_uploads WHEN new.status <> 'aborted' BEGIN
  UPDATE ingest_batches SET announced_bytes = announced_bytes + new.bytes_expected
    WHERE id = new.batch_id AND status = 'open';
END;
CREATE TRIGGER ingest_uploads_announced AFTER UPDATE OF status, bytes_expected ON ingest_uploads
WHEN (old.status <> 'aborted' OR new.status <> 'aborted')
  AND (old.status <> new.status OR old.bytes_expected <> new.bytes_expected) BEGIN
  UPDATE ingest_batches SET announced_bytes = announced_bytes
    + CASE WHEN new.status <> 'aborted' THEN new.bytes_expected ELSE 0 END
    - CASE WHEN old.status <> 'aborted' THEN old.bytes_expected ELSE 0 END
  WHERE id = new.batch_id AND status = 'open';
END;
CREATE TRIGGER ingest_uploads_unannounce AFTER DELETE ON ingest_uploads WHEN old.status <> 'aborted' BEGIN
  UPDATE ingest_batches SET announced_bytes = announced_bytes - old.bytes_expected
    WHERE id = old.batch_id AND status = 'open';
END;
CREATE TRIGGER ingest_batches_announced AFTER UPDATE OF announced_bytes, status ON ingest_batches
WHEN (old.status = 'open' OR new.status = 'open')
  AND (old.status <> new.status OR old.announced_bytes <> new.announced_bytes) BEGIN
  UPDATE tenants SET announced_bytes = announced_bytes
    + CASE WHEN new.status = 'open' THEN new.announced_bytes ELSE 0 END
    - CASE WHEN old.status = 'open' THEN old.announced_bytes ELSE 0 END
  WHERE id = new.tenant_id;
END;
CREATE TRIGGER ingest_batches_unannounce AFTER DELETE ON ingest_batches WHEN old.status = 'open' BEGIN
  UPDATE tenants SET announced_bytes = announced_bytes - old.announced_bytes WHERE id = old.tenant_id;
END;

-- Fetches take turns among tenants, and are counted over all processes. Until `claimed_until` a process runs one; one
-- that is to make room for another tenant's is `preempted`, and begins again later.
ALTER TABLE source_fetches ADD COLUMN tenant_id INTEGER NOT NULL DEFAULT 0;
ALTER TABLE source_fetches ADD COLUMN claimed_until INTEGER;
ALTER TABLE source_fetches ADD COLUMN preempted INTEGER NOT NULL DEFAULT 0;
UPDATE source_fetches SET tenant_id = (SELECT tenant_id FROM uploads WHERE uploads.id = upload_id);
CREATE INDEX source_fetches_by_tenant ON source_fetches (tenant_id, due_at);
CREATE INDEX source_fetches_claimed ON source_fetches (claimed_until) WHERE claimed_until IS NOT NULL;
