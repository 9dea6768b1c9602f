-- What the people of a tenant are notified of. Written in the transaction of the occurrence, once for each.
CREATE TABLE notifications (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  kind TEXT NOT NULL,
  occurrence TEXT NOT NULL,
  -- What it is about, as JSON.
  data TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  UNIQUE (tenant_id, kind, occurrence)
) STRICT;
CREATE INDEX notifications_by_tenant ON notifications (tenant_id, id);

CREATE TABLE notification_reads (
  user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  notification_id INTEGER NOT NULL REFERENCES notifications (id) ON DELETE CASCADE,
  PRIMARY KEY (user_id, notification_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX notification_reads_by_notification ON notification_reads (notification_id);

-- Kind -> where it is reported, as JSON; a kind that is absent is in the console only.
ALTER TABLE users ADD COLUMN notification_settings TEXT NOT NULL DEFAULT '{}';
