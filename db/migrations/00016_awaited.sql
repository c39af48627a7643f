-- +goose Up
-- Actions that somebody waits for pass the others of their bucket. A claim does
-- not change awaited, so that it stays a heap-only update; other rows pay nothing
-- for the index.
ALTER TABLE outbox ADD COLUMN awaited boolean NOT NULL DEFAULT false;
CREATE INDEX outbox_awaited ON outbox (bucket_id, next_attempt_at) WHERE awaited;
COMMENT ON COLUMN outbox.awaited IS 'Somebody waits for it: a person approved it, or the request that proposed it is still open.';
