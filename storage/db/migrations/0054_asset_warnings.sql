-- What of an asset's source is left out of its media, as JSON: [{"code", "message"}].
ALTER TABLE assets ADD COLUMN warnings TEXT NOT NULL DEFAULT '[]';
