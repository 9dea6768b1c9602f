-- The times of the words of a generated subtitle, by the key of its text: another text has none of them.
CREATE TABLE subtitle_words (
  object_key TEXT PRIMARY KEY,
  tenant_id INTEGER NOT NULL REFERENCES tenants (id),
  -- Deflated JSON.
  words BLOB NOT NULL
);
CREATE INDEX subtitle_words_by_tenant ON subtitle_words (tenant_id);

CREATE TRIGGER subtitle_words_of_changed AFTER UPDATE OF object_key ON subtitles WHEN new.object_key <> old.object_key BEGIN
  DELETE FROM subtitle_words WHERE object_key = old.object_key;
END;
CREATE TRIGGER subtitle_words_of_deleted AFTER DELETE ON subtitles BEGIN
  DELETE FROM subtitle_words WHERE object_key = old.object_key;
END;

CREATE TRIGGER database_bytes_of_new_words AFTER INSERT ON subtitle_words BEGIN
  UPDATE tenants SET database_bytes = database_bytes + octet_length(new.words) WHERE id = new.tenant_id;
END;
-- The rows of a tenant that is being deleted are not subtracted one by one.
CREATE TRIGGER database_bytes_of_deleted_words AFTER DELETE ON subtitle_words BEGIN
  UPDATE tenants SET database_bytes = max(0, database_bytes - octet_length(old.words))
  WHERE id = old.tenant_id AND delete_requested_at IS NULL;
END;
