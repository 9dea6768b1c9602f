-- The servers that share a remote database, while they live: each tells of itself every few seconds.
CREATE TABLE servers (
  id TEXT PRIMARY KEY,
  host TEXT NOT NULL,
  -- A hash of the signing secret, and where objects lie: servers that disagree would make each other's tokens worthless.
  secret_hash TEXT NOT NULL,
  objects TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  seen_at INTEGER NOT NULL
) STRICT;
