-- The network of a session's viewer, where VODBOX_ANALYTICS_IP=truncate.
ALTER TABLE playback_sessions ADD COLUMN network TEXT;
