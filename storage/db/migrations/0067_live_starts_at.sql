-- When the next broadcast of a channel is announced for; null: it is not announced.
ALTER TABLE live_channels ADD COLUMN starts_at INTEGER;
