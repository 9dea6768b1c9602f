-- How a source comes in: in one PUT, in parts, or by tus. The store's own id of a multipart upload is written down when
-- it has one, which is after the row: storage is never asked inside a transaction.
ALTER TABLE uploads ADD COLUMN mode TEXT NOT NULL DEFAULT 'put' CHECK (mode IN ('put', 'multipart', 'tus'));
ALTER TABLE uploads ADD COLUMN multipart_id TEXT;
ALTER TABLE uploads ADD COLUMN part_size INTEGER;
