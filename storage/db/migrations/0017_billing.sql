-- What a tenant used in a calendar month of UTC, named by its first millisecond. Rows are only ever added to.
CREATE TABLE usage_months (
  tenant_id INTEGER NOT NULL REFERENCES tenants (id),
  month_start INTEGER NOT NULL,
  egress_bytes INTEGER NOT NULL DEFAULT 0,
  transcoding_ms INTEGER NOT NULL DEFAULT 0,
  -- Bytes times the milliseconds that they were held, in decimal digits: a month of four petabytes is more than 2^63.
  storage_byte_ms TEXT NOT NULL DEFAULT '0',
  PRIMARY KEY (tenant_id, month_start)
) STRICT, WITHOUT ROWID;

-- Up to when the tenant's storage_bytes are counted in its months; null while it never held any.
ALTER TABLE tenants ADD COLUMN storage_changed_at INTEGER;
-- What was held until now has no history that could be counted.
UPDATE tenants SET storage_changed_at = CAST(strftime('%s', 'now') AS INTEGER) * 1000 WHERE storage_bytes > 0;

CREATE TABLE billing_orders (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  order_id TEXT NOT NULL UNIQUE,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id),
  plan_name TEXT NOT NULL CHECK (plan_name IN ('free', 'starter', 'pro', 'enterprise')),
  amount_minor INTEGER NOT NULL,
  currency TEXT NOT NULL,
  provider TEXT NOT NULL CHECK (provider IN ('stripe', 'paypal', 'simulated')),
  -- 'creating' until the provider's answer is written down.
  status TEXT NOT NULL CHECK (status IN ('creating', 'pending', 'paid', 'expired')),
  caller TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  request_hash TEXT NOT NULL,
  return_url TEXT NOT NULL,
  -- How often the provider has answered with a refusal, which it would give again to the same idempotency key.
  refusals INTEGER NOT NULL DEFAULT 0,
  provider_order_id TEXT,
  checkout_url TEXT,
  expires_at INTEGER NOT NULL,
  paid_at INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (caller, idempotency_key)
) STRICT;
CREATE INDEX billing_orders_by_tenant ON billing_orders (tenant_id, id);

-- Notifications that were acted on, so that none is twice.
CREATE TABLE billing_events (
  provider TEXT NOT NULL,
  event_id TEXT NOT NULL,
  type TEXT NOT NULL,
  order_id TEXT,
  received_at INTEGER NOT NULL,
  PRIMARY KEY (provider, event_id)
) STRICT, WITHOUT ROWID;
