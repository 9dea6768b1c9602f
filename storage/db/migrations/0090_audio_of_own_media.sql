-- Where an added track begins on the clock of its segments was not applied next to media of the asset's own: an asset that was trimmed
-- at once, and encoded again, plays the rest at its old times. By now it always is.
UPDATE audio_tracks SET media = json_remove(media, '$.startSeconds')
WHERE rendition IS NULL AND start_seconds = 0 AND json_extract(media, '$.startSeconds') IS NOT NULL
  AND asset_id IN (SELECT id FROM assets WHERE shared_media IS NULL);
