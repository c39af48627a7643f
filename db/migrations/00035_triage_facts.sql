-- +goose Up

-- What a decision rested on besides signals and prediction, so that people see
-- what other settings would have decided.
ALTER TABLE triage_decisions ADD COLUMN facts jsonb;
COMMENT ON COLUMN triage_decisions.facts IS 'Facts for deciding again under other settings (decide.Record); NULL if an older version decided, or the header has very many addresses.';
