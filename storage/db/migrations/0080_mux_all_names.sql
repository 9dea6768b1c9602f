-- Endpoints in Mux's form that have all names of before have those of channels too.
UPDATE webhook_endpoints SET event_types = (
  SELECT json_group_array(value) FROM (
    SELECT value FROM json_each(event_types)
    UNION SELECT value FROM json_each('["video.live_stream.created", "video.live_stream.enabled", "video.live_stream.disabled", "video.live_stream.deleted"]')
  )
) WHERE format = 'mux' AND json_array_length(event_types) = 10;
