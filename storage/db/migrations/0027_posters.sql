-- The poster that was chosen in place of the encoder's thumbnail: its object, bytes and size in pixels.
ALTER TABLE assets ADD COLUMN poster_path TEXT;
ALTER TABLE assets ADD COLUMN poster_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE assets ADD COLUMN poster_width INTEGER;
ALTER TABLE assets ADD COLUMN poster_height INTEGER;
