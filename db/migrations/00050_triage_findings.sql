-- +goose Up

-- Findings: what stands in a received mail, such as a receipt or a meeting. They are
-- shown to people and decide nothing. One-time codes are computed for each reader.
CREATE TABLE triage_findings (
    tenant_id    uuid        NOT NULL,
    message_id   uuid        NOT NULL,
    finding_no   smallint    NOT NULL,
    account_id   uuid        NOT NULL,
    kind         text        NOT NULL CONSTRAINT triage_findings_kind_check CHECK (kind IN ('receipt', 'meeting', 'task', 'travel', 'contact')),
    key          text        NOT NULL DEFAULT '',
    sequence     integer     NOT NULL DEFAULT 0,
    cancels      boolean     NOT NULL DEFAULT false,
    starts_at    timestamptz,
    ends_at      timestamptz,
    fields       jsonb       NOT NULL,
    CONSTRAINT triage_findings_pkey PRIMARY KEY (tenant_id, message_id, finding_no),
    CONSTRAINT triage_findings_message_fkey FOREIGN KEY (tenant_id, message_id) REFERENCES triage_messages (tenant_id, message_id) ON DELETE CASCADE
);
CREATE INDEX triage_findings_time_idx ON triage_findings (tenant_id, account_id, kind, starts_at);
CREATE INDEX triage_findings_key_idx ON triage_findings (tenant_id, account_id, key) WHERE key <> '';
COMMENT ON COLUMN triage_findings.key IS 'The UID of an event, which its sender chose; empty for others. A later message cancels an event of the same UID and sender.';
COMMENT ON COLUMN triage_findings.starts_at IS 'The time of a purchase, the start of a meeting or a journey, the day on which a task is due.';
COMMENT ON COLUMN triage_findings.fields IS 'Values with the part of the mail and the bytes that they are from: text of the mail.';

ALTER TABLE triage_findings OWNER TO countersign_owner;
ALTER TABLE triage_findings ENABLE ROW LEVEL SECURITY;
ALTER TABLE triage_findings FORCE ROW LEVEL SECURITY;
CREATE POLICY triage_findings_api ON triage_findings TO countersign_api USING (tenant_id = (SELECT current_tenant())) WITH CHECK (tenant_id = (SELECT current_tenant()));
CREATE POLICY triage_findings_triage ON triage_findings TO countersign_triage USING (tenant_id = (SELECT triage_tenant())) WITH CHECK (tenant_id = (SELECT triage_tenant()));
GRANT SELECT ON triage_findings TO countersign_api, countersign_triage;
GRANT INSERT ON triage_findings TO countersign_triage;

-- One-time codes were stored with the signals.
ALTER TABLE triage_decisions NO FORCE ROW LEVEL SECURITY;
UPDATE triage_decisions SET signals = signals - 'code' WHERE signals ? 'code';
ALTER TABLE triage_decisions FORCE ROW LEVEL SECURITY;
