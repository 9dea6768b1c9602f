-- Their number in a batch is limited.
CREATE INDEX ingest_uploads_aborted ON ingest_uploads (batch_id, id) WHERE status = 'aborted';
