-- +goose Up

-- Actions, from proposal to end: decisions of policy, approvals, the outbox of
-- what is due, the attempts, dead letters, dry runs and snapshots.

-- A decision is the result of policy with the result of every layer. A tenant
-- has few distinct decisions, however many actions it has, so each one is
-- stored once under the digest of its content and never changed.
CREATE TABLE decisions (
    tenant_id   uuid  NOT NULL,
    decision_id uuid  NOT NULL,
    mode        text  NOT NULL CONSTRAINT decisions_mode_check CHECK (mode IN ('allow', 'require_approval', 'deny')),
    mode_source text  NOT NULL,
    trace       jsonb NOT NULL,
    CONSTRAINT decisions_pkey PRIMARY KEY (tenant_id, decision_id)
);
COMMENT ON COLUMN decisions.decision_id IS 'First 16 bytes of a digest of mode, mode_source and trace, as audit.DecisionID computes it. actions.decision_id names it, which events cover.';

-- An action: the envelope as proposed, and what was decided about it. The row
-- is inserted once on the hot path; later only a decision or an edit by an
-- operator updates it. It has no foreign keys: a check per row would cost more
-- than the insert, and tenants are never deleted, because no role may do so.
CREATE TABLE actions (
    tenant_id           uuid        NOT NULL,
    action_id           uuid        NOT NULL,
    external_id         text,
    content_digest      bytea       NOT NULL,
    employee_id         uuid,
    session_id          text,
    automation_id       text,
    proposed_by         uuid,
    person              uuid,
    source_id           text        NOT NULL,
    tool_name           text        NOT NULL,
    composio_app        text,
    args                jsonb       NOT NULL,
    risk                text        NOT NULL CONSTRAINT actions_risk_check CHECK (risk IN ('low', 'medium', 'high')),
    effect              text        NOT NULL CONSTRAINT actions_effect_check CHECK (effect IN ('read', 'idempotent', 'keyed', 'once')),
    decision_id         uuid        NOT NULL,
    config_version      bigint      NOT NULL,
    tool_digest         bytea       NOT NULL,
    approval_state      text        NOT NULL CONSTRAINT actions_approval_state_check CHECK (approval_state IN ('auto', 'required', 'granted', 'denied', 'expired')),
    approval_expires_at timestamptz,
    decided_at          timestamptz,
    decided_by          text,
    decision_note       text,
    bucket_id           bigint      NOT NULL,
    rate_bucket         text,
    not_before          timestamptz,
    must_run_before     timestamptz,
    max_attempts        integer     NOT NULL,
    traceparent         text,
    created_at          timestamptz NOT NULL DEFAULT now(),
    urgent              boolean     NOT NULL DEFAULT false,
    approval_digest     bytea,
    origin              jsonb,
    workflow_id         uuid,
    CONSTRAINT actions_pkey PRIMARY KEY (tenant_id, action_id),
    CONSTRAINT actions_approval_expires_at_check CHECK (approval_state <> 'required' OR approval_expires_at IS NOT NULL)
) WITH (fillfactor = 95);
CREATE UNIQUE INDEX actions_external_id_key ON actions (tenant_id, external_id) WHERE external_id IS NOT NULL;
CREATE INDEX actions_awaiting_approval ON actions (approval_expires_at) WHERE approval_state = 'required';
-- The list of actions that wait for approval, oldest or newest first. It has the
-- columns that the list is filtered by, so that a filter that matches little reads
-- the index alone.
CREATE INDEX actions_inbox ON actions (tenant_id, action_id) INCLUDE (source_id, tool_name, session_id, automation_id, risk, approval_expires_at)
    WHERE approval_state = 'required';
-- The same list, the first to expire first, and the highest risk first.
CREATE INDEX actions_inbox_expiry ON actions (tenant_id, approval_expires_at, action_id) WHERE approval_state = 'required';
CREATE INDEX actions_inbox_risk ON actions (tenant_id, (CASE risk WHEN 'high' THEN 1 WHEN 'medium' THEN 2 ELSE 3 END), action_id)
    WHERE approval_state = 'required';
-- The count for tenants.session_pending_max. It is small: only actions that
-- wait for approval are in it.
CREATE INDEX actions_session_pending ON actions (tenant_id, session_id, approval_expires_at)
    WHERE approval_state = 'required' AND session_id IS NOT NULL;
-- The steps of a workflow. Actions that are not steps are not in it.
CREATE INDEX actions_workflow_id ON actions (tenant_id, workflow_id, action_id) WHERE workflow_id IS NOT NULL;
-- Retention finds old actions by it. BRIN, because it adds a few pages to the
-- hot path instead of one index entry per row.
CREATE INDEX actions_created_at ON actions USING brin (created_at) WITH (autosummarize = on);
COMMENT ON COLUMN actions.person IS 'Person who proposed it: the operator of the token proposed_by, or the token if it belongs to no operator; NULL for Countersign itself. Who proposed an action does not decide about it, and no grant of theirs covers it.';
COMMENT ON COLUMN actions.urgent IS 'The agent asks to send during quiet hours too. This applies only if the employee has the scope quiet_hours:override.';
COMMENT ON COLUMN actions.approval_digest IS 'Approval digest: what was approved, computed from the digests of the arguments, the tool definition and the decision. Set with granted, and compared just before sending.';
COMMENT ON COLUMN actions.origin IS 'The request that proposed it: ip, user_agent, via (api, mcp, ui, webhook, sql, workflow, system), request_id; NULL if not recorded.';
COMMENT ON COLUMN actions.workflow_id IS 'Workflow of which the action is a step.';

-- The state of the approval of an action; only actions that need one have a
-- row. Like everything about a decision it is written under the lock of the row
-- in actions.
CREATE TABLE approvals (
    tenant_id     uuid        NOT NULL,
    action_id     uuid        NOT NULL,
    round         integer     NOT NULL DEFAULT 1,
    needed        integer     NOT NULL CONSTRAINT approvals_needed_check CHECK (needed BETWEEN 1 AND 5),
    given         integer     NOT NULL DEFAULT 0,
    approval_digest bytea,
    asked         boolean     NOT NULL DEFAULT false,
    warn_at       timestamptz,
    warned_at     timestamptz,
    escalate_at   timestamptz,
    escalated_at  timestamptz,
    proposed_args jsonb,
    edits         jsonb       NOT NULL DEFAULT '[]',
    edited_by     text,
    editors       uuid[]      NOT NULL DEFAULT '{}',
    CONSTRAINT approvals_pkey PRIMARY KEY (tenant_id, action_id),
    CONSTRAINT approvals_action_id_fkey FOREIGN KEY (tenant_id, action_id) REFERENCES actions (tenant_id, action_id) ON DELETE CASCADE
) WITH (fillfactor = 80);
CREATE INDEX approvals_warn_at ON approvals (warn_at) WHERE warn_at IS NOT NULL;
CREATE INDEX approvals_escalate_at ON approvals (escalate_at) WHERE escalate_at IS NOT NULL;
CREATE INDEX approvals_escalated ON approvals (tenant_id, action_id) WHERE escalated_at IS NOT NULL;
COMMENT ON COLUMN approvals.round IS 'Incremented when what is voted on changes; votes of earlier rounds do not count.';
COMMENT ON COLUMN approvals.approval_digest IS 'Approval digest that the votes of this round are for; NULL while there is none.';
COMMENT ON COLUMN approvals.asked IS 'Whether the agent asked for an approval regardless of policy.';
COMMENT ON COLUMN approvals.warn_at IS 'When the expiry warning is due; NULL if none is.';
COMMENT ON COLUMN approvals.escalate_at IS 'When the escalation is due; NULL if none is.';
COMMENT ON COLUMN approvals.proposed_args IS 'Arguments as the agent proposed them, if an operator edited them. actions.args holds what will be sent.';
COMMENT ON COLUMN approvals.edits IS 'All edits, oldest first: by, at, and the JSON Pointers of the changed values.';
COMMENT ON COLUMN approvals.editors IS 'Persons who edited the arguments, as in votes.person. They do not vote where a review rule says so.';

CREATE TABLE votes (
    tenant_id uuid        NOT NULL,
    action_id uuid        NOT NULL,
    round     integer     NOT NULL,
    person    uuid        NOT NULL,
    token     uuid        NOT NULL,
    actor     text        NOT NULL,
    decision  text        NOT NULL CONSTRAINT votes_decision_check CHECK (decision IN ('grant', 'deny')),
    note      text,
    approval_digest bytea,
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT votes_pkey PRIMARY KEY (tenant_id, action_id, round, person, decision),
    CONSTRAINT votes_action_id_fkey FOREIGN KEY (tenant_id, action_id) REFERENCES approvals (tenant_id, action_id) ON DELETE CASCADE
);
COMMENT ON TABLE votes IS 'Votes on actions that wait for approval. Whoever granted may still deny, which denies the action.';
COMMENT ON COLUMN votes.person IS 'Operator id, or the token''s id if the token belongs to no operator.';

-- Actions that may run and have not ended. Rows are narrow and few, because the
-- row is deleted when the action ends. A claim changes lease_until, fence and
-- lost; no index contains these columns, so that a claim is a heap-only (HOT)
-- update. This is why the fill factor is low and outbox_due also contains
-- leased rows.
CREATE TABLE outbox (
    tenant_id       uuid        NOT NULL,
    action_id       uuid        NOT NULL,
    bucket_id       bigint      NOT NULL,
    next_attempt_at timestamptz NOT NULL,
    lease_until     timestamptz,
    fence           bigint      NOT NULL DEFAULT 0,
    attempt         integer     NOT NULL DEFAULT 0,
    max_attempts    integer     NOT NULL,
    lost            integer     NOT NULL DEFAULT 0,
    unsure          boolean     NOT NULL DEFAULT false,
    status          text        NOT NULL DEFAULT 'pending' CONSTRAINT outbox_status_check CHECK (status IN ('pending', 'sending')),
    held            boolean     NOT NULL DEFAULT false,
    waits_for       text,
    CONSTRAINT outbox_pkey PRIMARY KEY (tenant_id, action_id)
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.2,
    autovacuum_analyze_threshold = 10000
);
CREATE INDEX outbox_due ON outbox (bucket_id, next_attempt_at);
-- Only rows of buckets with a concurrency limit are ever held, so other rows
-- pay nothing for this index.
CREATE INDEX outbox_held ON outbox (bucket_id) WHERE held;
COMMENT ON COLUMN outbox.lease_until IS 'A worker has leased the row until this time; NULL or past if none has.';
COMMENT ON COLUMN outbox.fence IS 'Fencing token: incremented by every claim and every settlement, and never reused when an action returns to the outbox. A settlement must present the fence of its claim, so a worker that lost its lease cannot settle.';
COMMENT ON COLUMN outbox.attempt IS 'Number of attempts made. A call that was deferred does not count.';
COMMENT ON COLUMN outbox.lost IS 'Number of leases that expired. An action that repeatedly crashes its worker becomes a dead letter.';
COMMENT ON COLUMN outbox.unsure IS 'An attempt was sent but got no usable response, so the effect may have happened.';
COMMENT ON COLUMN outbox.status IS 'sending: committed just before a call of class once is sent. If the lease of such a row expires, the outcome is unknown.';
COMMENT ON COLUMN outbox.held IS 'It was claimed from a bucket with a concurrency limit, and counts towards the limit until its lease ends.';
COMMENT ON COLUMN outbox.waits_for IS 'Code of the reason why it was put back: retry, quiet_hours, paused, breaker_open, …; NULL if it was not.';

-- One row for every attempt, and one for every end without an attempt.
CREATE TABLE tool_executions (
    tenant_id   uuid        NOT NULL,
    action_id   uuid        NOT NULL,
    attempt     integer     NOT NULL,
    status      text        NOT NULL CONSTRAINT tool_executions_status_check CHECK (status IN ('pending', 'sent', 'conflict', 'failed', 'skipped', 'unknown')),
    code        text,
    message     text,
    result      json,
    provider_id text,
    worker      text,
    started_at  timestamptz,
    finished_at timestamptz NOT NULL,
    CONSTRAINT tool_executions_pkey PRIMARY KEY (tenant_id, action_id, finished_at, attempt)
) PARTITION BY RANGE (finished_at);
COMMENT ON COLUMN tool_executions.status IS 'Status of the action after the attempt: pending if it will be tried again, else how it ended.';
COMMENT ON COLUMN tool_executions.result IS 'Redacted and truncated to valid JSON before it is stored. json instead of jsonb, so that every response of a tool can be stored.';

-- ensure_partitions creates the monthly partitions of tool_executions from the
-- current month to months_ahead months later, and returns how many it created.
-- There is no default partition: its rows would prevent the creation of the
-- partition for their month. A partition is created apart and then attached: that
-- locks tool_executions in SHARE UPDATE EXCLUSIVE mode, beside readers and writers.
-- CREATE TABLE … PARTITION OF would wait for all of them in ACCESS EXCLUSIVE mode,
-- and let nobody pass meanwhile.
-- +goose StatementBegin
CREATE FUNCTION ensure_partitions(months_ahead integer) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    first_day date;
    made      integer := 0;
BEGIN
    FOR n IN 0 .. months_ahead LOOP
        first_day := (date_trunc('month', now() AT TIME ZONE 'UTC') + make_interval(months => n))::date;
        IF to_regclass(format('public.tool_executions_%s', to_char(first_day, 'YYYYMM'))) IS NULL THEN
            EXECUTE format('CREATE TABLE public.tool_executions_%s (LIKE public.tool_executions INCLUDING ALL)', to_char(first_day, 'YYYYMM'));
            EXECUTE format(
                'ALTER TABLE public.tool_executions ATTACH PARTITION public.tool_executions_%s FOR VALUES FROM (%L) TO (%L)',
                to_char(first_day, 'YYYYMM'),
                first_day::text || ' 00:00:00+00',
                (first_day + interval '1 month')::date::text || ' 00:00:00+00');
            made := made + 1;
        END IF;
    END LOOP;
    RETURN made;
EXCEPTION WHEN duplicate_table THEN
    -- Another session creates them concurrently; those of this call are rolled
    -- back.
    RETURN 0;
END
$$;
-- +goose StatementEnd

-- drop_partitions drops the oldest empty partition of a past month, and returns
-- the number of partitions dropped: 0 or 1. Detaching a partition needs an
-- exclusive lock on tool_executions. If the lock is not available within 200 ms
-- the call gives up until the next run, so that no writer waits longer.
-- Partitions are identified by name: a concurrently dropped one then raises
-- undefined_table, whereas its regclass would turn into a bare number.
-- +goose StatementBegin
CREATE FUNCTION drop_partitions() RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '200ms'
AS $$
DECLARE
    p     text;
    empty boolean;
BEGIN
    FOR p IN
        SELECT format('public.%I', c.relname)
        FROM pg_inherits i
        JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'public.tool_executions'::regclass
            AND c.relname ~ '^tool_executions_[0-9]{6}$'
            AND right(c.relname, 6) < to_char((now() - interval '7 days') AT TIME ZONE 'UTC', 'YYYYMM')
        ORDER BY c.relname
    LOOP
        EXECUTE format('SELECT NOT EXISTS (SELECT 1 FROM ONLY %s)', p) INTO empty;
        CONTINUE WHEN NOT empty;
        LOCK TABLE ONLY public.tool_executions IN ACCESS EXCLUSIVE MODE;
        EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE', p);
        EXECUTE format('SELECT NOT EXISTS (SELECT 1 FROM ONLY %s)', p) INTO empty;
        IF empty THEN
            EXECUTE format('DROP TABLE %s', p);
            RETURN 1;
        END IF;
        -- Another session inserted a row of a past month meanwhile. The locks
        -- are released at the end of the transaction.
        RETURN 0;
    END LOOP;
    RETURN 0;
EXCEPTION WHEN lock_not_available OR deadlock_detected OR undefined_table THEN
    -- The table is busy, or another session dropped the partition.
    RETURN 0;
END
$$;
-- +goose StatementEnd

CREATE TABLE dead_letters (
    tenant_id    uuid        NOT NULL,
    action_id    uuid        NOT NULL,
    reason       text        NOT NULL CONSTRAINT dead_letters_reason_check CHECK (reason IN ('refused', 'exhausted', 'unknown')),
    attempt      integer     NOT NULL,
    code         text,
    message      text,
    created_at   timestamptz NOT NULL DEFAULT now(),
    reconcile_attempts integer     NOT NULL DEFAULT 0,
    reconcile_at timestamptz,
    last_result  text,
    CONSTRAINT dead_letters_pkey PRIMARY KEY (tenant_id, action_id)
);
CREATE INDEX dead_letters_reconcile_at ON dead_letters (reconcile_at) WHERE reconcile_at IS NOT NULL;
CREATE INDEX dead_letters_unknown ON dead_letters (tenant_id, action_id) WHERE reason = 'unknown';
COMMENT ON TABLE dead_letters IS 'Actions that ended without their effect or with an unknown outcome. They wait for an operator to replay, discard or (if unknown) resolve them.';
COMMENT ON COLUMN dead_letters.reconcile_attempts IS 'Number of reconciling reads that were started. The result of a read counts only if the number has not changed since its start.';
COMMENT ON COLUMN dead_letters.reconcile_at IS 'When the next reconciling read is due; NULL if none is. A worker that starts a read moves it into the future, so that no other worker starts one, and so that it is due again if the worker is lost.';
COMMENT ON COLUMN dead_letters.last_result IS 'Code of the result of the last reconciling read; NULL if there was none.';

-- plan_reconcile schedules a reconciling read for a dead letter of unknown
-- outcome if its tool has a rule for it (tools.reconcile). A trigger does this so
-- that no statement that writes dead letters can forget it.
-- +goose StatementBegin
CREATE FUNCTION plan_reconcile() RETURNS trigger
    LANGUAGE plpgsql SET search_path = public, pg_temp
AS $$
BEGIN
    NEW.reconcile_attempts := 0;
    NEW.last_result := NULL;
    NEW.reconcile_at := NULL;
    IF NEW.reason = 'unknown' AND EXISTS (
        SELECT 1
        FROM actions a
        JOIN tools t ON t.tenant_id = a.tenant_id AND t.source_id = a.source_id AND t.name = a.tool_name
        WHERE a.tenant_id = NEW.tenant_id AND a.action_id = NEW.action_id AND t.reconcile IS NOT NULL
    ) THEN
        NEW.reconcile_at := now() + interval '10 seconds';
    END IF;
    RETURN NEW;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER dead_letters_plan_reconcile BEFORE INSERT OR UPDATE OF reason ON dead_letters
    FOR EACH ROW EXECUTE FUNCTION plan_reconcile();

-- The progress of a rate-limited replay of a selection of dead letters. A
-- replay that is stopped and started again continues after what it has already
-- scheduled.
CREATE TABLE replay_schedules (
    tenant_id uuid        NOT NULL,
    selection text        NOT NULL,
    next_at   timestamptz NOT NULL,
    CONSTRAINT replay_schedules_pkey PRIMARY KEY (tenant_id, selection)
);
COMMENT ON COLUMN replay_schedules.selection IS 'The filter in one line, or ids.';
COMMENT ON COLUMN replay_schedules.next_at IS 'When the next action of the selection may become due. A row with a past time has no effect and may be deleted.';

-- Dry runs: what would happen to a proposal, without doing it. They are listed
-- in the execution log together with actions.
CREATE TABLE dry_runs (
    tenant_id      uuid        NOT NULL CONSTRAINT dry_runs_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    execution_id   uuid        NOT NULL,
    at             timestamptz NOT NULL DEFAULT now(),
    content_digest bytea       NOT NULL,
    employee_id    uuid,
    session_id     text,
    automation_id  text,
    proposed_by    uuid,
    source_id      text        NOT NULL,
    tool_name      text        NOT NULL,
    args           jsonb       NOT NULL,
    risk           text        NOT NULL CONSTRAINT dry_runs_risk_check CHECK (risk IN ('low', 'medium', 'high')),
    effect         text        NOT NULL CONSTRAINT dry_runs_effect_check CHECK (effect IN ('read', 'idempotent', 'keyed', 'once')),
    mode           text        NOT NULL CONSTRAINT dry_runs_mode_check CHECK (mode IN ('allow', 'require_approval', 'deny')),
    mode_source    text        NOT NULL,
    trace          jsonb       NOT NULL,
    preview        jsonb       NOT NULL,
    origin         jsonb,
    CONSTRAINT dry_runs_pkey PRIMARY KEY (tenant_id, execution_id)
);
CREATE INDEX dry_runs_content_digest ON dry_runs (tenant_id, content_digest, execution_id);
CREATE INDEX dry_runs_at ON dry_runs USING brin (at);
COMMENT ON COLUMN dry_runs.execution_id IS 'UUIDv7, so that it sorts by time among action ids.';
COMMENT ON COLUMN dry_runs.preview IS 'Preview: the results of the checks, and when the action would have been sent.';

-- The state of something just before and after a call, captured by a read tool
-- of the same source. attempt is that of the call.
CREATE TABLE snapshots (
    tenant_id uuid        NOT NULL,
    action_id uuid        NOT NULL,
    attempt   integer     NOT NULL,
    stage     text        NOT NULL CONSTRAINT snapshots_stage_check CHECK (stage IN ('before', 'after')),
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    tool_name text        NOT NULL,
    code      text,
    result    json,
    CONSTRAINT snapshots_pkey PRIMARY KEY (tenant_id, action_id, at, stage)
);
COMMENT ON COLUMN snapshots.code IS 'Code of the reason why there is no result; NULL if there is one.';
COMMENT ON COLUMN snapshots.result IS 'Redacted and truncated to valid JSON before it is stored.';

-- drop_snapshots deletes the snapshots of deleted actions, whichever statement
-- deletes them.
-- +goose StatementBegin
CREATE FUNCTION drop_snapshots() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    DELETE FROM snapshots s USING gone g WHERE s.tenant_id = g.tenant_id AND s.action_id = g.action_id;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER actions_drop_snapshots AFTER DELETE ON actions REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION drop_snapshots();

-- action_phase is envelope.PhaseOf in SQL; a test compares the two.
CREATE FUNCTION action_phase(approval text, status text, code text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN status = 'skipped' AND code = 'undone' THEN 'undone'
    WHEN approval IN ('denied', 'expired') THEN approval
    WHEN approval = 'required' AND status = 'pending' THEN 'pending'
    WHEN status = 'pending' THEN 'approved'
    WHEN status = 'sending' THEN 'executing'
    WHEN status IN ('sent', 'conflict') THEN 'completed'
    ELSE status
END;

-- envelopes is the view that readers use: an action with its decision, its
-- approval, its status, what it waits for, and its last attempt.
CREATE VIEW envelopes WITH (security_invoker = true) AS
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

-- ended_actions is the view of actions that ended, with the time of the end:
-- those that are neither in the outbox, nor waiting for approval, nor dead
-- letters. Retention may delete only these.
CREATE VIEW ended_actions WITH (security_invoker = true) AS
SELECT a.tenant_id, a.action_id, a.created_at, greatest(a.created_at, a.decided_at, l.finished_at) AS ended_at
FROM actions a
LEFT JOIN LATERAL (
    SELECT max(e.finished_at) AS finished_at, bool_or(e.status <> 'pending') AS final
    FROM tool_executions e
    WHERE e.tenant_id = a.tenant_id AND e.action_id = a.action_id
) l ON true
WHERE a.approval_state <> 'required'
    AND (l.final OR a.approval_state IN ('denied', 'expired'))
    AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.tenant_id = a.tenant_id AND o.action_id = a.action_id)
    AND NOT EXISTS (SELECT 1 FROM dead_letters d WHERE d.tenant_id = a.tenant_id AND d.action_id = a.action_id);

-- Row-level security: the same two policies for every table. Partitions have no
-- policies of their own and are not granted to any role: whoever read one by
-- its own name would bypass the policies of tool_executions.
-- +goose StatementBegin
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['decisions', 'actions', 'approvals', 'votes', 'outbox', 'tool_executions', 'dead_letters', 'replay_schedules',
                             'dry_runs', 'snapshots'] LOOP
        EXECUTE format('ALTER TABLE %I OWNER TO countersign_owner', t);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_api USING (tenant_id = (SELECT current_tenant())) WITH CHECK (tenant_id = (SELECT current_tenant()))', t || '_api', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_worker USING (true) WITH CHECK (true)', t || '_worker', t);
    END LOOP;
END
$$;
-- +goose StatementEnd
-- drop_snapshots runs as the owner, to whom FORCE applies.
CREATE POLICY snapshots_owner_drop ON snapshots TO countersign_owner USING (true);

ALTER VIEW envelopes OWNER TO countersign_owner;
ALTER VIEW ended_actions OWNER TO countersign_owner;
ALTER FUNCTION ensure_partitions(integer) OWNER TO countersign_owner;
ALTER FUNCTION drop_partitions() OWNER TO countersign_owner;
ALTER FUNCTION plan_reconcile() OWNER TO countersign_owner;
ALTER FUNCTION drop_snapshots() OWNER TO countersign_owner;
ALTER FUNCTION action_phase(text, text, text) OWNER TO countersign_owner;

-- It runs as the owner, so that the partitions belong to the owner too.
SELECT ensure_partitions(2);

REVOKE EXECUTE ON FUNCTION ensure_partitions(integer), drop_partitions(), drop_snapshots(), plan_reconcile(), action_phase(text, text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ensure_partitions(integer), drop_partitions() TO countersign_worker;
GRANT EXECUTE ON FUNCTION action_phase(text, text, text) TO countersign_api, countersign_worker;

GRANT SELECT ON envelopes, snapshots TO countersign_api;
GRANT SELECT, INSERT ON decisions, votes, tool_executions, dry_runs TO countersign_api;
GRANT SELECT, INSERT, UPDATE ON actions, approvals TO countersign_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON outbox, replay_schedules TO countersign_api;
GRANT SELECT, UPDATE, DELETE ON dead_letters TO countersign_api;

-- Workers insert actions and decisions too: the steps of workflows, the
-- deliveries of subscriptions, and the decision that returns an action to
-- approval.
GRANT SELECT ON envelopes, ended_actions, votes TO countersign_worker;
GRANT SELECT, INSERT ON decisions, tool_executions, snapshots TO countersign_worker;
GRANT SELECT, INSERT, UPDATE ON actions, approvals TO countersign_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON outbox, dead_letters TO countersign_worker;
GRANT SELECT, DELETE ON dry_runs TO countersign_worker;
