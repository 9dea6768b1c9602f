-- One plain file beside the segments, where the operator wants it.
ALTER TABLE assets ADD COLUMN mp4_path TEXT;
