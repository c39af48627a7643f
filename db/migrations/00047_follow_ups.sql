-- +goose Up

-- What is owed in a thread is computed from messages and decisions. A person closes a
-- follow-up or puts it off, by the message that it rests on: a later message of the
-- thread is another one.
CREATE TABLE triage_follow_ups (
    tenant_id    uuid        NOT NULL,
    message_id   uuid        NOT NULL,
    account_id   uuid        NOT NULL,
    done_at      timestamptz,
    later_until  timestamptz,
    set_by       text        NOT NULL,
    set_at       timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT triage_follow_ups_pkey PRIMARY KEY (tenant_id, message_id),
    CONSTRAINT triage_follow_ups_message_fkey FOREIGN KEY (tenant_id, message_id) REFERENCES triage_messages (tenant_id, message_id) ON DELETE CASCADE
);
COMMENT ON COLUMN triage_follow_ups.done_at IS 'When a person closed it; NULL while it is open.';
COMMENT ON COLUMN triage_follow_ups.later_until IS 'Until when a person put it off, or NULL.';
ALTER TABLE triage_follow_ups OWNER TO countersign_owner;
ALTER TABLE triage_follow_ups ENABLE ROW LEVEL SECURITY;
ALTER TABLE triage_follow_ups FORCE ROW LEVEL SECURITY;
CREATE POLICY triage_follow_ups_api ON triage_follow_ups TO countersign_api USING (tenant_id = (SELECT current_tenant())) WITH CHECK (tenant_id = (SELECT current_tenant()));
CREATE POLICY triage_follow_ups_triage ON triage_follow_ups TO countersign_triage USING (tenant_id = (SELECT triage_tenant())) WITH CHECK (tenant_id = (SELECT triage_tenant()));
GRANT SELECT ON triage_follow_ups TO countersign_api, countersign_triage;
GRANT INSERT, UPDATE (done_at, later_until, set_by, set_at) ON triage_follow_ups TO countersign_api;

-- The decisions and messages that follow-ups rest on.
CREATE INDEX triage_decisions_owed_idx ON triage_decisions (tenant_id, account_id, received_at DESC) WHERE act IN ('request', 'propose', 'meet', 'commit');
CREATE INDEX triage_messages_asked_idx ON triage_messages (tenant_id, account_id, received_at DESC) WHERE awaits;
-- What left the inbox, for briefs.
CREATE INDEX triage_messages_left_idx ON triage_messages (tenant_id, account_id, left_at) WHERE left_at IS NOT NULL;
