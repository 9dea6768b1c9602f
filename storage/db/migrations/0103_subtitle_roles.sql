-- Whom a subtitle is for: `caption` are also for people who cannot hear, `forced` for everyone who does not choose another one.
ALTER TABLE subtitles ADD COLUMN role TEXT NOT NULL DEFAULT 'subtitle'
  CHECK (role IN ('subtitle', 'caption', 'description', 'forced'));
