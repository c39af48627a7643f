-- +goose Up
-- A recovery waits for the reports of the workers that may have sent something that this
-- database does not have, and of no others.
ALTER TABLE fence ADD COLUMN point timestamptz;
COMMENT ON COLUMN fence.point IS 'When a worker was last seen before the server changed: not later than the last commit of before. For a move: when the database was held. Empty while the fence is open, and if it is not known.';
