CREATE TABLE collections (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  parent_id INTEGER REFERENCES collections (id) ON DELETE SET NULL,
  name TEXT NOT NULL,
  slug TEXT NOT NULL,
  description TEXT,
  position INTEGER NOT NULL DEFAULT 0,
  -- Kept by triggers: counting a hundred thousand assets for each row of a list would hold everyone up.
  asset_count INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (tenant_id, slug)
) STRICT;
CREATE INDEX collections_in_order ON collections (tenant_id, position, created_at, id);
CREATE INDEX collections_of_all ON collections (position, created_at, id);
CREATE INDEX collections_by_parent ON collections (parent_id);
CREATE TRIGGER collections_count_insert AFTER INSERT ON assets WHEN new.collection_id IS NOT NULL BEGIN
  UPDATE collections SET asset_count = asset_count + 1 WHERE id = new.collection_id;
END;
CREATE TRIGGER collections_count_delete AFTER DELETE ON assets WHEN old.collection_id IS NOT NULL BEGIN
  UPDATE collections SET asset_count = asset_count - 1 WHERE id = old.collection_id;
END;
CREATE TRIGGER collections_count_update AFTER UPDATE OF collection_id ON assets
WHEN old.collection_id IS NOT new.collection_id BEGIN
  UPDATE collections SET asset_count = asset_count - 1 WHERE id = old.collection_id;
  UPDATE collections SET asset_count = asset_count + 1 WHERE id = new.collection_id;
END;

-- The newest come first in every list, so each filter has an index that ends in the id.
CREATE INDEX assets_by_collection ON assets (tenant_id, collection_id, id);
CREATE INDEX assets_by_playback ON assets (tenant_id, playback_status, id);
CREATE INDEX assets_by_input ON assets (tenant_id, input_status, id);
CREATE INDEX assets_by_filename ON assets (tenant_id, original_filename, id);
CREATE INDEX assets_by_path ON assets (tenant_id, relative_path, id) WHERE relative_path IS NOT NULL;
CREATE INDEX assets_by_sha256 ON assets (tenant_id, source_sha256, id) WHERE source_sha256 IS NOT NULL;

CREATE INDEX assets_by_source ON assets (tenant_id, source_key);

-- Finds any three characters in a row without reading every asset; the text itself stays in `assets`. The tenant is a
-- word as well, between two characters of private use (U+E000, U+E001), so that a search need not wade through others'.
CREATE VIEW assets_words AS
  SELECT id, title, description, original_filename, char(57344) || tenant_id || char(57345) AS tenant FROM assets;
CREATE VIRTUAL TABLE assets_text USING fts5 (
  title, description, original_filename, tenant,
  content = 'assets_words', content_rowid = 'id', tokenize = 'trigram'
);
INSERT INTO assets_text (rowid, title, description, original_filename, tenant)
  SELECT id, title, description, original_filename, tenant FROM assets_words;
CREATE TRIGGER assets_text_insert AFTER INSERT ON assets BEGIN
  INSERT INTO assets_text (rowid, title, description, original_filename, tenant)
    VALUES (new.id, new.title, new.description, new.original_filename, char(57344) || new.tenant_id || char(57345));
END;
CREATE TRIGGER assets_text_delete AFTER DELETE ON assets BEGIN
  INSERT INTO assets_text (assets_text, rowid, title, description, original_filename, tenant)
    VALUES ('delete', old.id, old.title, old.description, old.original_filename,
      char(57344) || old.tenant_id || char(57345));
END;
CREATE TRIGGER assets_text_update AFTER UPDATE OF title, description, original_filename ON assets
WHEN old.title IS NOT new.title OR old.description IS NOT new.description
  OR old.original_filename IS NOT new.original_filename BEGIN
  INSERT INTO assets_text (assets_text, rowid, title, description, original_filename, tenant)
    VALUES ('delete', old.id, old.title, old.description, old.original_filename,
      char(57344) || old.tenant_id || char(57345));
  INSERT INTO assets_text (rowid, title, description, original_filename, tenant)
    VALUES (new.id, new.title, new.description, new.original_filename, char(57344) || new.tenant_id || char(57345));
END;

CREATE TABLE subtitles (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  asset_id INTEGER NOT NULL REFERENCES assets (id) ON DELETE CASCADE,
  language TEXT NOT NULL,
  label TEXT NOT NULL,
  position INTEGER NOT NULL DEFAULT 0,
  source TEXT NOT NULL CHECK (source IN ('upload', 'translation', 'auto')),
  is_default INTEGER NOT NULL DEFAULT 0,
  status TEXT NOT NULL DEFAULT 'ready' CHECK (status IN ('pending', 'processing', 'ready', 'failed')),
  -- A new body gets a new key, so that row and object change together.
  object_key TEXT NOT NULL UNIQUE,
  bytes INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (asset_id, language)
) STRICT;

CREATE TABLE tracks (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  asset_id INTEGER NOT NULL REFERENCES assets (id) ON DELETE CASCADE,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  position INTEGER NOT NULL DEFAULT 0,
  status TEXT NOT NULL CHECK (status IN ('pending', 'processing', 'ready', 'failed')),
  cues TEXT,
  storage_key TEXT,
  source TEXT,
  producer TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (asset_id, kind, name)
) STRICT;

-- People who may redeem a device token. An address is one person's, over all tenants.
CREATE TABLE users (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  email_address TEXT NOT NULL UNIQUE,
  password_hash TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX users_by_tenant ON users (tenant_id, id);

CREATE TABLE pairing_codes (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  code_hash TEXT NOT NULL UNIQUE,
  expires_at INTEGER NOT NULL,
  used_at INTEGER,
  created_at INTEGER NOT NULL
) STRICT;

-- Whose password a key was given for; none for a key that was issued.
ALTER TABLE api_keys ADD COLUMN user_id INTEGER REFERENCES users (id) ON DELETE SET NULL;
CREATE INDEX api_keys_by_user ON api_keys (user_id) WHERE user_id IS NOT NULL;

CREATE INDEX jobs_by_tenant ON transcoding_jobs (tenant_id, id);
CREATE INDEX jobs_of_tenant_by_status ON transcoding_jobs (tenant_id, status, id);
CREATE INDEX jobs_by_status ON transcoding_jobs (status, id);

-- Objects that no row names: no longer, written down in the transaction that let go of them, or not yet, written down
-- before their bytes. A duty removes them once they are due.
CREATE TABLE unwanted_objects (
  -- A key, or with a slash at its end all that lies under it.
  object_key TEXT PRIMARY KEY,
  due_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX unwanted_due ON unwanted_objects (due_at);
