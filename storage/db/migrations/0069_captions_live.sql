-- Languages in which the speech of a running stream is recognized, as subtitles that viewers see while it runs.
ALTER TABLE live_channels ADD COLUMN captions_live TEXT NOT NULL DEFAULT '[]';
