-- +goose Up

-- The owner's promises are follow-ups until a later mail of the thread has the promised
-- thing. Days of the week are those of the sender's clock.
ALTER TABLE triage_messages
    ADD COLUMN promises boolean NOT NULL DEFAULT false,
    ADD COLUMN delivers boolean NOT NULL DEFAULT false,
    ADD COLUMN sent_offset integer;
COMMENT ON COLUMN triage_messages.promises IS 'The owner wrote it and promises something in it.';
COMMENT ON COLUMN triage_messages.delivers IS 'The owner wrote it and sends something with it, or reports that something is done.';
COMMENT ON COLUMN triage_messages.sent_offset IS 'Seconds east of UTC of the sender''s clock, by the Date of the message; NULL if it is not plausible.';
CREATE INDEX triage_messages_promised_idx ON triage_messages (tenant_id, account_id, received_at DESC) WHERE promises;
