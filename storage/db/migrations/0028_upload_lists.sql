-- For lists of uploads with a status, newest first: of a tenant, and of all.
CREATE INDEX uploads_by_status ON uploads (tenant_id, status, id);
CREATE INDEX uploads_of_status ON uploads (status, id);
