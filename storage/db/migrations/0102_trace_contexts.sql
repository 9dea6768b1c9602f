-- The W3C trace context (`traceparent`) of the request that queued a job, or caused an event, where traces are on: workers and
-- deliveries of webhooks continue its trace.
ALTER TABLE transcoding_jobs ADD COLUMN traceparent TEXT;
ALTER TABLE events ADD COLUMN traceparent TEXT;
