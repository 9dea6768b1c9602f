-- Sources that the server fetches itself. The address may be a credential: it is forgotten with the row, which goes when
-- the fetch is over, well or badly.
CREATE TABLE source_fetches (
  upload_id INTEGER PRIMARY KEY REFERENCES uploads (id) ON DELETE CASCADE,
  url TEXT NOT NULL,
  failures INTEGER NOT NULL DEFAULT 0,
  -- When it is to be tried next; while it is fetched, when somebody else may take it over.
  due_at INTEGER NOT NULL
) STRICT;
CREATE INDEX source_fetches_due ON source_fetches (due_at);
