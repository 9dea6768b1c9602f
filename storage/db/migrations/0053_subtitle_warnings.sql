-- Which cues of the uploaded file were left out of the text, as JSON: the client cannot see it in the text.
ALTER TABLE subtitles ADD COLUMN warnings TEXT NOT NULL DEFAULT '[]';
