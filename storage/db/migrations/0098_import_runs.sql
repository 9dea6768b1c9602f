-- Imports from other platforms, as the command that runs them reports.
CREATE TABLE import_runs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL REFERENCES tenants(id),
  provider TEXT NOT NULL,
  source TEXT,
  status TEXT NOT NULL DEFAULT 'running',
  total INTEGER NOT NULL,
  imported INTEGER NOT NULL DEFAULT 0,
  unchanged INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0,
  encoding INTEGER NOT NULL DEFAULT 0,
  bytes INTEGER NOT NULL DEFAULT 0,
  error TEXT,
  problems TEXT NOT NULL DEFAULT '[]',
  problem_count INTEGER NOT NULL DEFAULT 0,
  ended_at INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);
CREATE INDEX import_runs_tenant ON import_runs (tenant_id, id);
