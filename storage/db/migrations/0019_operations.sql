-- While one lives nothing that rows of a moment ago named is removed from storage. It ends by itself: whoever asked for
-- it may die.
CREATE TABLE removal_holds (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  expires_at INTEGER NOT NULL
) STRICT;

-- Who changed what with the admin token, and who touched a tenant's credentials; written in the transaction of the
-- change. No reference to tenants: what was done to one outlives it.
CREATE TABLE audit_entries (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  created_at INTEGER NOT NULL,
  actor TEXT NOT NULL CHECK (actor IN ('admin', 'key', 'anyone')),
  key_id INTEGER,
  tenant_id INTEGER,
  address TEXT NOT NULL,
  -- What the caller says of itself: who sat at the command line.
  operator TEXT,
  method TEXT NOT NULL,
  route TEXT NOT NULL,
  target_type TEXT NOT NULL,
  target_id TEXT,
  -- Names alone: a value may be a secret.
  fields TEXT NOT NULL,
  request_id TEXT NOT NULL
) STRICT;
CREATE INDEX audit_by_tenant ON audit_entries (tenant_id, id);
CREATE INDEX audit_by_age ON audit_entries (created_at);

-- Kept by triggers: counting a hundred thousand jobs at each scrape of the metrics would hold everyone up.
CREATE TABLE job_counts (
  status TEXT PRIMARY KEY,
  jobs INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO job_counts (status, jobs) VALUES ('queued', 0), ('running', 0), ('completed', 0), ('failed', 0), ('canceled', 0);
UPDATE job_counts SET jobs = (SELECT count(*) FROM transcoding_jobs WHERE transcoding_jobs.status = job_counts.status);
CREATE TRIGGER job_counts_insert AFTER INSERT ON transcoding_jobs BEGIN
  UPDATE job_counts SET jobs = jobs + 1 WHERE status = new.status;
END;
CREATE TRIGGER job_counts_delete AFTER DELETE ON transcoding_jobs BEGIN
  UPDATE job_counts SET jobs = jobs - 1 WHERE status = old.status;
END;
CREATE TRIGGER job_counts_update AFTER UPDATE OF status ON transcoding_jobs WHEN old.status <> new.status BEGIN
  UPDATE job_counts SET jobs = jobs - 1 WHERE status = old.status;
  UPDATE job_counts SET jobs = jobs + 1 WHERE status = new.status;
END;
