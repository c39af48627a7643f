-- +goose Up

-- A worker describes itself where it records that it runs.
ALTER TABLE workers
    ADD COLUMN host text NOT NULL DEFAULT '',
    ADD COLUMN version text NOT NULL DEFAULT '',
    ADD COLUMN started_at timestamptz NOT NULL DEFAULT now(),
    ADD COLUMN concurrency integer NOT NULL DEFAULT 0,
    ADD COLUMN in_flight integer NOT NULL DEFAULT 0,
    ADD COLUMN draining boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN workers.concurrency IS 'The most calls at a time; 0 for a process of an earlier version, which reports none of these columns.';
COMMENT ON COLUMN workers.in_flight IS 'Actions that the process held at seen_at.';
COMMENT ON COLUMN workers.draining IS 'The process stops: it claims nothing, and its calls end.';

-- A row each minute in which a worker ran: a minute without one was not sampled.
CREATE TABLE fleet_samples (
    at        timestamptz NOT NULL CONSTRAINT fleet_samples_pkey PRIMARY KEY,
    workers   integer     NOT NULL,
    estimated boolean     NOT NULL DEFAULT false,
    horizon   xid8        NOT NULL
);
COMMENT ON TABLE fleet_samples IS 'The minutes in which backlogs were sampled, for 14 days.';
COMMENT ON COLUMN fleet_samples.estimated IS 'The backlogs of the minute are estimates.';
COMMENT ON COLUMN fleet_samples.horizon IS 'Events before this transaction are counted in this sample or an earlier one.';

-- Only tenants with a number that is not zero have a row.
CREATE TABLE backlog_samples (
    tenant_id  uuid             NOT NULL CONSTRAINT backlog_samples_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    at         timestamptz      NOT NULL,
    due        bigint           NOT NULL,
    scheduled  bigint           NOT NULL,
    in_flight  bigint           NOT NULL,
    approvals  bigint           NOT NULL,
    oldest_due double precision NOT NULL,
    ended      jsonb            NOT NULL DEFAULT '{}',
    CONSTRAINT backlog_samples_pkey PRIMARY KEY (tenant_id, at)
);
COMMENT ON TABLE backlog_samples IS 'The backlog of a tenant in a sampled minute.';
COMMENT ON COLUMN backlog_samples.oldest_due IS 'Seconds that the oldest startable action had waited for a worker.';
COMMENT ON COLUMN backlog_samples.ended IS 'Actions that ended since the sample before, by status.';

ALTER TABLE fleet_samples OWNER TO countersign_owner;
ALTER TABLE backlog_samples OWNER TO countersign_owner;
ALTER TABLE backlog_samples ENABLE ROW LEVEL SECURITY;
ALTER TABLE backlog_samples FORCE ROW LEVEL SECURITY;
CREATE POLICY backlog_samples_api ON backlog_samples FOR SELECT TO countersign_api USING (tenant_id = (SELECT current_tenant()));
CREATE POLICY backlog_samples_worker ON backlog_samples TO countersign_worker USING (true);
GRANT SELECT ON fleet_samples, backlog_samples TO countersign_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON fleet_samples, backlog_samples TO countersign_worker;

-- The API counts what a pause of an automation covers.
GRANT EXECUTE ON FUNCTION triage_automation(uuid, text), automation_covers(text, uuid, text, text) TO countersign_api;
