-- Where objects lie, once that was ever changed by a migration: what the settings said at some start does not tell.
-- `other` is where they are carried to before the switch, where they are carried from after it, and where old copies
-- lie when it is over. One row.
CREATE TABLE storage_place (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  active TEXT NOT NULL CHECK (active IN ('local', 's3')),
  other TEXT CHECK (other IN ('local', 's3') AND other <> active),
  phase TEXT NOT NULL CHECK (phase IN ('settled', 'copying', 'verifying', 'switching', 'draining', 'cleaning')),
  paused INTEGER NOT NULL DEFAULT 0,
  quick INTEGER NOT NULL DEFAULT 0,
  -- How far the pass of this phase is: the last key of which all before it are done.
  after_key TEXT NOT NULL DEFAULT '',
  objects_total INTEGER,
  bytes_total INTEGER,
  objects_done INTEGER NOT NULL DEFAULT 0,
  bytes_done INTEGER NOT NULL DEFAULT 0,
  objects_copied INTEGER NOT NULL DEFAULT 0,
  bytes_copied INTEGER NOT NULL DEFAULT 0,
  objects_verified INTEGER NOT NULL DEFAULT 0,
  objects_mended INTEGER NOT NULL DEFAULT 0,
  error TEXT,
  started_at INTEGER,
  switched_at INTEGER,
  finished_at INTEGER,
  updated_at INTEGER NOT NULL
);
