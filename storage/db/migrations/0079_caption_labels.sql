ALTER TABLE uploads ADD COLUMN caption_labels TEXT NOT NULL DEFAULT '{}';
