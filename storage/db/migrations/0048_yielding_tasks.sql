-- The segment (JSON: rendition, number) that a viewer waits for while a worker encodes the chunk that contains it, but
-- would reach it late: the worker is asked to complete the chunk early.
ALTER TABLE transcoding_tasks ADD COLUMN yield_to TEXT;
