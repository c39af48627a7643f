-- +goose Up

-- Copies of a message have one decision. Those that differ in header fields or in
-- authentication that deciding uses are judged one by one, and joined.
ALTER TABLE triage_decisions
    ADD COLUMN judged text[] NOT NULL DEFAULT '{}',
    DROP CONSTRAINT triage_decisions_reason_check,
    ADD CONSTRAINT triage_decisions_reason_check CHECK (reason IN ('new', 'answered', 'asked', 'brought_back', 'copied', 'corrected'));
COMMENT ON COLUMN triage_decisions.judged IS 'Digests of the header fields and the authentication of the copies that the decision joins, the first 16; empty for decisions of older versions.';
