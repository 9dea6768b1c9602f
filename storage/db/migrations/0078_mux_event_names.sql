-- The name of the event in Mux's form: some of ours are two of Mux's.
ALTER TABLE webhook_deliveries ADD COLUMN name TEXT;
-- Endpoints in Mux's form are subscribed to its names.
UPDATE webhook_endpoints SET event_types = (
  SELECT json_group_array(DISTINCT names.value) FROM json_each(event_types) AS types
  JOIN json_each(CASE types.value
    WHEN 'video.upload.completed' THEN '["video.asset.created", "video.upload.asset_created"]'
    WHEN 'video.upload.failed' THEN '["video.upload.errored"]'
    WHEN 'video.subtitle.ready' THEN '["video.asset.track.ready"]'
    WHEN 'live.stream.started' THEN '["video.live_stream.active"]'
    WHEN 'live.stream.ended' THEN '["video.live_stream.idle"]'
    WHEN 'live.recording.ready' THEN '["video.asset.live_stream_completed"]'
    ELSE json_array(types.value) END) AS names
) WHERE format = 'mux' AND event_types <> '[]';
