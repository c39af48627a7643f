-- +goose Up

-- The calendar of an account's owner, as a worker last read it: the source's credentials
-- are the worker's. Briefs are made from it.
CREATE TABLE triage_calendars (
    tenant_id  uuid        NOT NULL,
    account_id uuid        NOT NULL,
    source_id  text        NOT NULL,
    zone       text        NOT NULL,
    tried_at   timestamptz NOT NULL,
    read_at    timestamptz,
    problem    text        NOT NULL DEFAULT '',
    events     jsonb       NOT NULL DEFAULT '{}',
    CONSTRAINT triage_calendars_pkey PRIMARY KEY (tenant_id, account_id),
    CONSTRAINT triage_calendars_account_fkey FOREIGN KEY (tenant_id, account_id) REFERENCES triage_accounts (tenant_id, account_id) ON DELETE CASCADE
);
COMMENT ON COLUMN triage_calendars.zone IS 'The zone of whole days and of times without a zone.';
COMMENT ON COLUMN triage_calendars.problem IS 'Why the last reading failed, without text of the calendar; empty if it did not.';
COMMENT ON COLUMN triage_calendars.events IS 'The events of the coming days: text of the calendar.';
ALTER TABLE triage_calendars OWNER TO countersign_owner;
ALTER TABLE triage_calendars ENABLE ROW LEVEL SECURITY;
ALTER TABLE triage_calendars FORCE ROW LEVEL SECURITY;
CREATE POLICY triage_calendars_api ON triage_calendars TO countersign_api USING (tenant_id = (SELECT current_tenant())) WITH CHECK (tenant_id = (SELECT current_tenant()));
CREATE POLICY triage_calendars_triage ON triage_calendars FOR SELECT TO countersign_triage USING (tenant_id = (SELECT triage_tenant()));
CREATE POLICY triage_calendars_worker ON triage_calendars TO countersign_worker USING (true) WITH CHECK (true);
GRANT SELECT ON triage_calendars TO countersign_api, countersign_triage, countersign_worker;
GRANT DELETE ON triage_calendars TO countersign_api; -- erasing an account
GRANT INSERT, UPDATE ON triage_calendars TO countersign_worker;
-- A worker finds the calendars to read.
GRANT SELECT (enabled, proposals) ON triage_accounts TO countersign_worker;
