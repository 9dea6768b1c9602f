-- The search in titles, descriptions, captions and chapters (docs/architecture.md#search). A row is a section: the texts of an
-- asset itself (subtitle_id 0), or about an hour of the captions of one subtitle.
CREATE TABLE search_sections (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  asset_id INTEGER NOT NULL REFERENCES assets (id) ON DELETE CASCADE,
  subtitle_id INTEGER NOT NULL,
  number INTEGER NOT NULL,
  UNIQUE (asset_id, subtitle_id, number)
) STRICT;
CREATE INDEX search_sections_by_tenant ON search_sections (tenant_id, id);
-- The lines that results show, compressed. Apart from the sections, whose rows are then small.
CREATE TABLE search_texts (
  section_id INTEGER PRIMARY KEY REFERENCES search_sections (id) ON DELETE CASCADE,
  data BLOB NOT NULL
) STRICT;
-- Terms of src/lib/search/terms.ts. Neither texts nor positions, only which sections have a term. Merged in small steps by a
-- scheduled task, as assets_text.
CREATE VIRTUAL TABLE search_index USING fts5 (
  terms, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
);
INSERT INTO search_index (search_index, rank) VALUES ('automerge', 0);
INSERT INTO search_index (search_index, rank) VALUES ('crisismerge', 1000);
CREATE TRIGGER search_sections_delete AFTER DELETE ON search_sections BEGIN
  DELETE FROM search_index WHERE rowid = old.id;
END;

-- Texts that are to be indexed, written in the transaction that changes them; the sections of older texts are deleted in the
-- same transaction. A change while a text is being indexed replaces its row by one with another id.
CREATE TABLE search_queue (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  asset_id INTEGER NOT NULL REFERENCES assets (id) ON DELETE CASCADE,
  subtitle_id INTEGER NOT NULL,
  -- 1: from before the index existed. What changes now comes first.
  is_old INTEGER NOT NULL DEFAULT 0,
  UNIQUE (asset_id, subtitle_id)
) STRICT;
CREATE INDEX search_queue_in_order ON search_queue (is_old, id);
CREATE INDEX search_queue_by_tenant ON search_queue (tenant_id, is_old, id);
INSERT INTO search_queue (tenant_id, asset_id, subtitle_id, is_old) SELECT tenant_id, id, 0, 1 FROM assets;
INSERT INTO search_queue (tenant_id, asset_id, subtitle_id, is_old)
  SELECT tenant_id, asset_id, id, 1 FROM subtitles WHERE status = 'ready';

CREATE TRIGGER search_asset_insert AFTER INSERT ON assets BEGIN
  INSERT INTO search_queue (tenant_id, asset_id, subtitle_id) VALUES (new.tenant_id, new.id, 0);
END;
CREATE TRIGGER search_asset_update AFTER UPDATE OF title, description ON assets
WHEN old.title IS NOT new.title OR old.description IS NOT new.description BEGIN
  DELETE FROM search_sections WHERE asset_id = new.id AND subtitle_id = 0;
  DELETE FROM search_queue WHERE asset_id = new.id AND subtitle_id = 0;
  INSERT INTO search_queue (tenant_id, asset_id, subtitle_id) VALUES (new.tenant_id, new.id, 0);
END;

CREATE TRIGGER search_chapter_insert AFTER INSERT ON tracks WHEN new.kind = 'chapter' BEGIN
  DELETE FROM search_sections WHERE asset_id = new.asset_id AND subtitle_id = 0;
  DELETE FROM search_queue WHERE asset_id = new.asset_id AND subtitle_id = 0;
  INSERT INTO search_queue (tenant_id, asset_id, subtitle_id) VALUES (new.tenant_id, new.asset_id, 0);
END;
CREATE TRIGGER search_chapter_update AFTER UPDATE OF kind, name, status, cues ON tracks
WHEN old.kind = 'chapter' OR new.kind = 'chapter' BEGIN
  DELETE FROM search_sections WHERE asset_id = new.asset_id AND subtitle_id = 0;
  DELETE FROM search_queue WHERE asset_id = new.asset_id AND subtitle_id = 0;
  INSERT INTO search_queue (tenant_id, asset_id, subtitle_id) VALUES (new.tenant_id, new.asset_id, 0);
END;
-- Also when its asset is deleted, which then does not exist any more.
CREATE TRIGGER search_chapter_delete AFTER DELETE ON tracks WHEN old.kind = 'chapter' BEGIN
  DELETE FROM search_sections WHERE asset_id = old.asset_id AND subtitle_id = 0;
  DELETE FROM search_queue WHERE asset_id = old.asset_id AND subtitle_id = 0;
  INSERT INTO search_queue (tenant_id, asset_id, subtitle_id)
    SELECT tenant_id, id, 0 FROM assets WHERE id = old.asset_id;
END;

CREATE TRIGGER search_subtitle_insert AFTER INSERT ON subtitles WHEN new.status = 'ready' BEGIN
  INSERT INTO search_queue (tenant_id, asset_id, subtitle_id) VALUES (new.tenant_id, new.asset_id, new.id);
END;
CREATE TRIGGER search_subtitle_update AFTER UPDATE OF object_key, status, language ON subtitles
WHEN old.object_key <> new.object_key OR old.status <> new.status OR old.language <> new.language BEGIN
  DELETE FROM search_sections WHERE asset_id = new.asset_id AND subtitle_id = new.id;
  DELETE FROM search_queue WHERE asset_id = new.asset_id AND subtitle_id = new.id;
  INSERT INTO search_queue (tenant_id, asset_id, subtitle_id)
    SELECT new.tenant_id, new.asset_id, new.id WHERE new.status = 'ready';
END;
CREATE TRIGGER search_subtitle_delete AFTER DELETE ON subtitles BEGIN
  DELETE FROM search_sections WHERE asset_id = old.asset_id AND subtitle_id = old.id;
  DELETE FROM search_queue WHERE asset_id = old.asset_id AND subtitle_id = old.id;
END;
