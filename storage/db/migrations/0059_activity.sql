-- Who and what, as a tenant's activity names and filters them: a user's e-mail address at that time, `key:<id>`, `operator`, or
-- the kind of the actor; and the operation.
ALTER TABLE audit_entries ADD COLUMN actor_name TEXT;
ALTER TABLE audit_entries ADD COLUMN action TEXT;
UPDATE audit_entries SET
  actor_name = CASE actor
    WHEN 'admin' THEN 'operator'
    WHEN 'key' THEN 'key:' || key_id
    WHEN 'user' THEN coalesce((SELECT email_address FROM users WHERE id = audit_entries.user_id), 'user:' || user_id)
    ELSE actor END,
  action = CASE method WHEN '' THEN route ELSE method || ' ' || route END;
CREATE INDEX audit_by_actor ON audit_entries (tenant_id, actor_name, id);
CREATE INDEX audit_by_action ON audit_entries (tenant_id, action, id);
