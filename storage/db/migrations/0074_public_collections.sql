-- A collection that is published has a page of its own. The code stays when it is withdrawn: its URL then says so, and is the same
-- when it is published again.
ALTER TABLE collections ADD COLUMN is_public INTEGER NOT NULL DEFAULT 0;
ALTER TABLE collections ADD COLUMN public_code TEXT;
CREATE UNIQUE INDEX collections_by_public_code ON collections (public_code) WHERE public_code IS NOT NULL;

-- What such a page may show, newest first, however many other videos the collection has.
CREATE INDEX assets_published ON assets (collection_id, id)
  WHERE playback_status = 'ready' AND playback_policy = 'public' AND collection_id IS NOT NULL;
