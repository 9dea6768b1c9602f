-- Whether the provider had verified the e-mail address of the user when the account was linked.
ALTER TABLE user_identities ADD COLUMN is_verified INTEGER NOT NULL DEFAULT 0;
