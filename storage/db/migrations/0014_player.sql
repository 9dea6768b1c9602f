-- Whose pages may show a tenant's embed page in a frame: a JSON array of origins; `*` is everybody's.
ALTER TABLE tenants ADD COLUMN allowed_origins TEXT NOT NULL DEFAULT '["*"]' CHECK (json_valid(allowed_origins));
