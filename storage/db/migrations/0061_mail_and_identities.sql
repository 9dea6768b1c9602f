-- Mail to be sent. A row exists until the mail server has accepted the mail, or the mail is of no use any more.
CREATE TABLE mails (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  -- A requested password reset belongs to no tenant before its user was looked up.
  tenant_id INTEGER REFERENCES tenants (id) ON DELETE CASCADE,
  kind TEXT NOT NULL,
  recipient TEXT NOT NULL,
  -- Subject and text, encrypted, because they contain a link that is a secret. Null: not written yet.
  content TEXT,
  due_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX mails_by_due ON mails (due_at);
CREATE INDEX mails_by_tenant ON mails (tenant_id);

CREATE TABLE password_resets (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  code_hash TEXT NOT NULL UNIQUE,
  expires_at INTEGER NOT NULL,
  -- The row stays for a while, so that the link says so.
  used_at INTEGER,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX password_resets_by_user ON password_resets (user_id);
CREATE INDEX password_resets_by_expiry ON password_resets (expires_at);

-- Accounts at an OpenID provider with which users sign in.
CREATE TABLE user_identities (
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (issuer, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX user_identities_by_user ON user_identities (user_id);
