-- +goose Up
-- A copy of the database, or a database that lost commits, must send nothing. The
-- fence is the row that every claim and every start compares with.
CREATE TABLE fence (
    one            boolean     NOT NULL DEFAULT true CONSTRAINT fence_pkey PRIMARY KEY,
    database_id    uuid        NOT NULL DEFAULT gen_random_uuid(),
    recovered_from uuid,
    epoch          bigint      NOT NULL DEFAULT 0,
    state          text        NOT NULL DEFAULT 'new',
    reason         text        NOT NULL DEFAULT '',
    detail         text        NOT NULL DEFAULT '',
    system_id      text        NOT NULL DEFAULT '',
    database_oid   bigint      NOT NULL DEFAULT 0,
    timeline       integer     NOT NULL DEFAULT 0,
    started        timestamptz,
    changed_at     timestamptz NOT NULL DEFAULT now(),
    ask_until      timestamptz,
    lost           bigint      NOT NULL DEFAULT 0,
    recovery_by    text        NOT NULL DEFAULT '',
    recovery_at    timestamptz,
    CONSTRAINT fence_one_check CHECK (one),
    CONSTRAINT fence_state_check CHECK (state IN ('new', 'open', 'checking', 'held')),
    CONSTRAINT fence_reason_check CHECK ((state = 'held') = (reason <> ''))
);
COMMENT ON TABLE fence IS 'The identity of this database and whether its actions may be sent.';
COMMENT ON COLUMN fence.database_id IS 'Chosen at the migration and again by each recovery; copies share it until they are recovered.';
COMMENT ON COLUMN fence.recovered_from IS 'The database_id before the last recovery.';
COMMENT ON COLUMN fence.epoch IS 'Rises whenever the server changed or the database was recovered. Workers claim with the epoch that they have checked.';
COMMENT ON COLUMN fence.state IS 'new: no worker has worked here; checking: the server changed, and workers compare their commits; held: nothing is claimed.';
COMMENT ON COLUMN fence.system_id IS 'The system identifier of the cluster; empty if the server withholds it. database_oid and timeline are 0 then.';
COMMENT ON COLUMN fence.started IS 'When the server started that workers have checked. On any other server claims return nothing.';
COMMENT ON COLUMN fence.ask_until IS 'Actions of class once that were proposed before need a person, because they may repeat one that was lost.';
COMMENT ON COLUMN fence.recovery_by IS 'The database login that asked for a recovery which a second one has to confirm; empty for none.';
COMMENT ON COLUMN fence.lost IS 'Number of rows of lost_calls whose actions this database does not have.';
INSERT INTO fence DEFAULT VALUES;

-- Claims and starts read the epoch in which actions may be sent: none while the fence
-- is held or checked, and none on a server that was not checked.
CREATE VIEW fence_epoch WITH (security_invoker = true) AS
SELECT CASE f.state WHEN 'new' THEN 0 WHEN 'open' THEN f.epoch END AS epoch
FROM fence f
WHERE f.one AND (f.state = 'new' OR f.started = pg_postmaster_start_time());

CREATE TABLE workers (
    worker     uuid        NOT NULL CONSTRAINT workers_pkey PRIMARY KEY,
    name       text        NOT NULL,
    epoch      bigint      NOT NULL,
    remembers  boolean     NOT NULL,
    state_file boolean     NOT NULL,
    lease      interval    NOT NULL,
    seen_at    timestamptz NOT NULL DEFAULT now(),
    ended      boolean     NOT NULL DEFAULT false,
    reported   boolean     NOT NULL DEFAULT false,
    refuses    text        NOT NULL DEFAULT ''
) WITH (fillfactor = 50);
COMMENT ON TABLE workers IS 'Processes of workers. One that ended without a drain stays until it is old.';
COMMENT ON COLUMN workers.epoch IS 'The last epoch in which the process found all its commits.';
COMMENT ON COLUMN workers.remembers IS 'The process, or its state file, had commits to compare in that epoch.';
COMMENT ON COLUMN workers.reported IS 'The process has compared its commits with the held database, and reported the calls that were lost.';
COMMENT ON COLUMN workers.refuses IS 'Why this process claims nothing, though the database is not held; empty if it claims.';

-- Each claim, start and settlement raises the row of its loop. WAL is a prefix: if the
-- last commit that a loop knows of is there, then so are all earlier ones. The
-- update is heap-only.
CREATE TABLE worker_commits (
    worker uuid     NOT NULL,
    loop   smallint NOT NULL,
    seq    bigint   NOT NULL,
    CONSTRAINT worker_commits_pkey PRIMARY KEY (worker, loop)
) WITH (fillfactor = 50);

-- Calls that a worker made and whose commits this database lost.
CREATE TABLE lost_calls (
    tenant_id   uuid        NOT NULL CONSTRAINT lost_calls_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    action_id   uuid        NOT NULL,
    external_id text        NOT NULL,
    source_id   text        NOT NULL,
    tool_name   text        NOT NULL,
    effect      text        NOT NULL,
    outcome     text        NOT NULL,
    code        text        NOT NULL,
    provider_id text        NOT NULL,
    worker      text        NOT NULL,
    called_at   timestamptz NOT NULL,
    known       boolean     NOT NULL,
    reported_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT lost_calls_pkey PRIMARY KEY (tenant_id, action_id)
);
CREATE INDEX lost_calls_external_id ON lost_calls (tenant_id, external_id) WHERE external_id <> '';
COMMENT ON COLUMN lost_calls.known IS 'The action exists, and its outcome was recorded again.';

-- server_identity returns the identity of the server. What the server withholds is
-- empty or zero: a managed service may, and a standby has no current timeline.
-- +goose StatementBegin
CREATE FUNCTION server_identity(OUT system_id text, OUT database_oid bigint, OUT timeline integer, OUT started timestamptz)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, countersign_data, pg_temp
AS $$
BEGIN
    system_id := '';
    timeline := 0;
    started := pg_postmaster_start_time();
    SELECT d.oid::bigint INTO database_oid FROM pg_database d WHERE d.datname = current_database();
    BEGIN
        SELECT s.system_identifier::text INTO system_id FROM pg_control_system() s;
    EXCEPTION WHEN OTHERS THEN
        system_id := '';
    END;
    BEGIN
        timeline := ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::integer;
    EXCEPTION WHEN OTHERS THEN
        timeline := 0;
    END;
END
$$;
-- +goose StatementEnd

CREATE OR REPLACE VIEW envelopes WITH (security_invoker = true) AS
SELECT
    a.tenant_id, a.action_id, a.external_id, a.employee_id, a.session_id, a.automation_id, a.proposed_by,
    a.source_id, a.tool_name, a.composio_app, a.args, a.risk, a.effect, d.mode, d.mode_source, d.trace,
    a.config_version, a.tool_digest, a.approval_state, a.approval_expires_at, a.decided_at, a.decided_by, a.decision_note,
    a.rate_bucket, a.not_before, a.must_run_before, a.traceparent, a.created_at,
    s.status,
    coalesce(o.attempt, l.attempt, 0) AS attempt,
    o.next_attempt_at,
    l.code, l.message, l.result, l.provider_id, l.started_at, l.finished_at,
    a.urgent,
    CASE
        WHEN a.approval_state = 'required' THEN 'approval'
        WHEN o.status = 'sending' OR o.lease_until > now() THEN NULL
        WHEN o.waits_for IS NOT NULL AND o.next_attempt_at > now() THEN o.waits_for
        WHEN o.action_id IS NOT NULL AND bucket_paused(o.tenant_id, b.name) THEN 'paused'
        WHEN b.opens_at > greatest(now(), o.next_attempt_at) THEN coalesce(CASE WHEN b.closed_until = b.opens_at THEN b.closed_by END, 'bucket')
        WHEN o.next_attempt_at > now() THEN 'not_before'
        WHEN o.action_id IS NOT NULL AND (SELECT f.state FROM fence f) = 'held' THEN 'held'
        WHEN o.action_id IS NOT NULL THEN 'turn'
    END AS waits_for,
    CASE WHEN o.lease_until > now() THEN NULL ELSE greatest(o.next_attempt_at, b.opens_at) END AS waits_until,
    a.origin, a.workflow_id,
    p.proposed_args, p.needed AS approvals_needed, p.given AS approvals_given, p.edited_by, p.edits, p.round AS approval_round,
    a.decision_id,
    action_phase(a.approval_state, s.status, l.code) AS phase
FROM actions a
JOIN decisions d ON d.tenant_id = a.tenant_id AND d.decision_id = a.decision_id
LEFT JOIN approvals p ON p.tenant_id = a.tenant_id AND p.action_id = a.action_id
LEFT JOIN outbox o ON o.tenant_id = a.tenant_id AND o.action_id = a.action_id
LEFT JOIN buckets b ON b.bucket_id = o.bucket_id
LEFT JOIN LATERAL (
    SELECT e.status, e.attempt, e.code, e.message, e.result, e.provider_id, e.started_at, e.finished_at
    FROM tool_executions e
    WHERE e.tenant_id = a.tenant_id AND e.action_id = a.action_id
    ORDER BY e.finished_at DESC, e.attempt DESC
    LIMIT 1
) l ON true
CROSS JOIN LATERAL (
    SELECT
        CASE
            WHEN o.action_id IS NOT NULL THEN
                CASE WHEN o.status = 'sending' OR (a.effect <> 'once' AND o.lease_until > now()) THEN 'sending' ELSE 'pending' END
            -- These come before the last attempt: an action that waits for approval,
            -- or was denied, may have ended earlier and been replayed, and its last
            -- attempt is then from before the replay.
            WHEN a.approval_state = 'required' THEN 'pending'
            WHEN a.approval_state IN ('denied', 'expired') THEN 'skipped'
            WHEN l.status IS NOT NULL THEN l.status
            ELSE 'pending'
        END AS status
) s;

ALTER TABLE fence OWNER TO countersign_owner;
ALTER TABLE workers OWNER TO countersign_owner;
ALTER TABLE worker_commits OWNER TO countersign_owner;
ALTER TABLE lost_calls OWNER TO countersign_owner;
ALTER VIEW fence_epoch OWNER TO countersign_owner;
ALTER FUNCTION server_identity() OWNER TO countersign_owner;
REVOKE EXECUTE ON FUNCTION server_identity() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION server_identity() TO countersign_worker;
GRANT SELECT ON fence TO countersign_api;
GRANT SELECT, UPDATE ON fence TO countersign_worker;
GRANT SELECT ON fence_epoch TO countersign_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON workers, worker_commits TO countersign_worker;

ALTER TABLE lost_calls ENABLE ROW LEVEL SECURITY;
ALTER TABLE lost_calls FORCE ROW LEVEL SECURITY;
CREATE POLICY lost_calls_api ON lost_calls TO countersign_api USING (tenant_id = (SELECT current_tenant())) WITH CHECK (tenant_id = (SELECT current_tenant()));
CREATE POLICY lost_calls_worker ON lost_calls TO countersign_worker USING (true);
GRANT SELECT ON lost_calls TO countersign_api;
GRANT SELECT, INSERT, UPDATE ON lost_calls TO countersign_worker;
