-- +goose Up

ALTER TABLE grants ADD COLUMN loose text[] NOT NULL DEFAULT '{}';
COMMENT ON COLUMN grants.pins IS 'Arguments that are held: the empty JSON Pointer with the arguments as a whole, without what is loose. Grants with other pointers alone leave all other arguments open.';
COMMENT ON COLUMN grants.loose IS 'JSON Pointers to the members of the arguments that may have any value or be absent; the empty pointer for all that is not pinned.';
