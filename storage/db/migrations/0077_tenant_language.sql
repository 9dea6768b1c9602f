ALTER TABLE tenants ADD COLUMN language TEXT;
