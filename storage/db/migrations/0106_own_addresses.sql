-- Whether the user has set the address, which no one has confirmed.
ALTER TABLE users ADD COLUMN is_email_own INTEGER NOT NULL DEFAULT 0;
