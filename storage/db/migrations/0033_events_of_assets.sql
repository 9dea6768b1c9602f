-- The deliveries of an asset are found through its events, whose data contain the asset's id as a string.
CREATE INDEX events_by_asset ON events (json_extract(data, '$.asset_id'), id);
