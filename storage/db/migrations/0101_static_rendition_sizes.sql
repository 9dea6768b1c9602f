-- The size of the file of a static rendition, and the version of the media and audio that it belongs to: it is computed from the
-- sizes of all segments, and other media or another default audio track give another one.
ALTER TABLE static_renditions ADD COLUMN bytes INTEGER;
ALTER TABLE static_renditions ADD COLUMN bytes_version TEXT;
