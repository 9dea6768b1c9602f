-- From which address a key was used last: a key that somebody else uses shows in it.
ALTER TABLE api_keys ADD COLUMN last_used_address TEXT;
