-- Several servers that receive live streams. `server` is the server process that receives the stream, or completes its
-- recording: the others leave the stream to it while it updates `updated_at`. `interrupted_at`: since when the publisher is
-- disconnected. `prefix`: of the stored segments.
ALTER TABLE live_streams ADD COLUMN server TEXT;
ALTER TABLE live_streams ADD COLUMN interrupted_at INTEGER;
ALTER TABLE live_streams ADD COLUMN prefix TEXT;

-- What a server needs to deliver a stream that another one receives: reports of the ingest process, once the segments that
-- they name are stored, numbered from 1 in each stream. `state`, in the first row and about once a minute, is that of the
-- playlists before these reports. Rows are deleted when no playlist lists their segments any more.
CREATE TABLE live_reports (
  stream_id INTEGER NOT NULL,
  number INTEGER NOT NULL,
  end_seconds REAL NOT NULL,
  state TEXT,
  reports TEXT NOT NULL,
  PRIMARY KEY (stream_id, number)
) STRICT;
CREATE INDEX live_reports_with_state ON live_reports (stream_id, number) WHERE state IS NOT NULL;

-- A profile that a channel names cannot be deleted.
CREATE INDEX live_channels_by_profile ON live_channels (encoding_profile) WHERE encoding_profile IS NOT NULL;
