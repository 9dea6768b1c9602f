-- Clients of Mux's API read back the latency that they have set: "reduced" is "standard" here under its own name.
ALTER TABLE mux_streams ADD COLUMN is_reduced INTEGER NOT NULL DEFAULT 0;
