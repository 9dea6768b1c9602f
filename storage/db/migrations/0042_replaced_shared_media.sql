-- Media that newer ones have replaced may be those of a clip or of a trimmed asset: the objects that shared_media names are
-- under shared_prefix, and are served as long as the manifests.
ALTER TABLE replaced_media ADD COLUMN shared_prefix TEXT;
ALTER TABLE replaced_media ADD COLUMN shared_media TEXT;
