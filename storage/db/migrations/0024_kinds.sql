-- The kinds of object storage and of payment providers are listed in the program alone, so that another one needs no
-- migration: the rows are written from its registries, and read through them.
CREATE TABLE storage_place_new (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  active TEXT NOT NULL,
  other TEXT CHECK (other <> active),
  phase TEXT NOT NULL CHECK (phase IN ('settled', 'copying', 'verifying', 'switching', 'draining', 'cleaning')),
  paused INTEGER NOT NULL DEFAULT 0,
  quick INTEGER NOT NULL DEFAULT 0,
  -- How far the pass of this phase has come: all keys up to this one are done.
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
INSERT INTO storage_place_new SELECT
  id, active, other, phase, paused, quick, after_key, objects_total, bytes_total, objects_done, bytes_done,
  objects_copied, bytes_copied, objects_verified, objects_mended, error, started_at, switched_at, finished_at, updated_at
FROM storage_place;
DROP TABLE storage_place;
ALTER TABLE storage_place_new RENAME TO storage_place;

CREATE TABLE billing_orders_new (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  order_id TEXT NOT NULL UNIQUE,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id),
  plan_name TEXT NOT NULL CHECK (plan_name IN ('free', 'starter', 'pro', 'enterprise')),
  amount_minor INTEGER NOT NULL,
  currency TEXT NOT NULL,
  provider TEXT NOT NULL,
  -- 'creating' until the provider's response is recorded.
  status TEXT NOT NULL CHECK (status IN ('creating', 'pending', 'paid', 'expired')),
  caller TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  request_hash TEXT NOT NULL,
  return_url TEXT NOT NULL,
  -- Refusals by the provider, which it would repeat for the same idempotency key.
  refusals INTEGER NOT NULL DEFAULT 0,
  provider_order_id TEXT,
  checkout_url TEXT,
  expires_at INTEGER NOT NULL,
  paid_at INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (caller, idempotency_key)
) STRICT;
INSERT INTO billing_orders_new SELECT
  id, order_id, tenant_id, plan_name, amount_minor, currency, provider, status, caller, idempotency_key, request_hash,
  return_url, refusals, provider_order_id, checkout_url, expires_at, paid_at, created_at, updated_at
FROM billing_orders;
DROP TABLE billing_orders;
ALTER TABLE billing_orders_new RENAME TO billing_orders;
CREATE INDEX billing_orders_by_tenant ON billing_orders (tenant_id, id);
