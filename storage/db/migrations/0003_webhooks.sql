CREATE TABLE webhook_endpoints (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  url TEXT NOT NULL,
  description TEXT,
  -- Names of events; none stands for all.
  event_types TEXT NOT NULL DEFAULT '[]',
  active INTEGER NOT NULL DEFAULT 1,
  -- Enciphered: deliveries are signed with it, so a hash will not do.
  secret TEXT NOT NULL,
  -- What it was before, which signs as well until it expires.
  previous_secret TEXT,
  previous_secret_expires_at INTEGER,
  -- Failed attempts since one succeeded, and when the first of them was.
  failure_count INTEGER NOT NULL DEFAULT 0,
  failing_since INTEGER,
  disabled_at INTEGER,
  disabled_reason TEXT CHECK (disabled_reason IN ('gone', 'failing')),
  last_delivery_at INTEGER,
  -- Gone to everybody; its deliveries follow in slices, then the row itself.
  deleted_at INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX webhook_endpoints_by_tenant ON webhook_endpoints (tenant_id, id) WHERE deleted_at IS NULL;
CREATE INDEX webhook_endpoints_deleted ON webhook_endpoints (id) WHERE deleted_at IS NOT NULL;

-- One row an event and endpoint, written in the transaction of the event.
CREATE TABLE webhook_deliveries (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  endpoint_id INTEGER NOT NULL REFERENCES webhook_endpoints (id) ON DELETE CASCADE,
  event_id INTEGER NOT NULL REFERENCES events (id) ON DELETE CASCADE,
  status TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'delivered', 'failed', 'skipped')),
  -- All that were ever made, and those since it was last sent anew, of which there are six at most.
  attempts INTEGER NOT NULL DEFAULT 0,
  tries INTEGER NOT NULL DEFAULT 0,
  next_attempt_at INTEGER,
  -- Whoever claimed it has until then; its result is taken from nobody else.
  claimed_until INTEGER,
  last_attempt_at INTEGER,
  delivered_at INTEGER,
  response_status INTEGER,
  response_body TEXT,
  duration_ms INTEGER,
  error_code TEXT,
  error_message TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX webhook_deliveries_by_endpoint ON webhook_deliveries (endpoint_id, id);
CREATE INDEX webhook_deliveries_by_event ON webhook_deliveries (event_id);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (endpoint_id, next_attempt_at, id) WHERE status = 'pending';
CREATE INDEX webhook_deliveries_undelivered ON webhook_deliveries (status, id) WHERE status IN ('failed', 'skipped');
