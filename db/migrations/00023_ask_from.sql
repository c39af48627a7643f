-- +goose Up
-- Actions that were there at a recovery go on, or became unknown: only later ones may
-- repeat one that was lost.
ALTER TABLE fence ADD COLUMN ask_from timestamptz;
COMMENT ON COLUMN fence.ask_until IS 'Actions of class once that were proposed from ask_from until then need a person, because they may repeat one that was lost.';
