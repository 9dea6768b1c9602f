-- Sources whose checksum no worker has computed, because each of them read only a part: a server reads them when the job is
-- complete. `available_at`: while a server reads one it is in the future, and again after a failure.
CREATE TABLE source_sums (
  asset_id INTEGER PRIMARY KEY REFERENCES assets (id) ON DELETE CASCADE,
  source_key TEXT NOT NULL,
  failures INTEGER NOT NULL DEFAULT 0,
  available_at INTEGER NOT NULL
) STRICT;
CREATE INDEX source_sums_by_time ON source_sums (available_at);
