-- name: ActionInsertAlike :exec
-- ActionInsertMany for envelopes that differ only in the columns given as arrays.
WITH inserted_actions AS (
    INSERT INTO actions (
        tenant_id, action_id, external_id, content_digest, employee_id, session_id, automation_id, proposed_by, person,
        source_id, tool_name, composio_app, args, risk, effect, decision_id, config_version, tool_digest,
        approval_state, approval_expires_at, decision_note, bucket_id, rate_bucket, not_before, must_run_before, max_attempts, traceparent, urgent, origin, workflow_id)
    SELECT
        @tenant_id, p.action_id, nullif(p.external_id, ''), p.content_digest, sqlc.narg(employee_id)::uuid, sqlc.narg(session_id)::text,
        sqlc.narg(automation_id)::text, sqlc.narg(proposed_by)::uuid, sqlc.narg(person)::uuid, @source_id::text, @tool_name::text,
        sqlc.narg(composio_app)::text, p.args, @risk::text, @effect::text, @decision_id::uuid, @config_version, @tool_digest::bytea, @approval_state::text,
        sqlc.narg(approval_expires_at)::timestamptz, sqlc.narg(decision_note)::text, p.bucket_id, nullif(p.rate_bucket, ''),
        sqlc.narg(not_before)::timestamptz, sqlc.narg(must_run_before)::timestamptz, @max_attempts::integer, sqlc.narg(traceparent)::text,
        @urgent::boolean, sqlc.narg(origin)::jsonb, sqlc.narg(workflow_id)::uuid
    FROM (SELECT unnest(@action_ids::uuid[]) AS action_id, unnest(@external_ids::text[]) AS external_id, unnest(@content_digests::bytea[]) AS content_digest,
        unnest(@args::jsonb[]) AS args, unnest(@bucket_ids::bigint[]) AS bucket_id, unnest(@rate_buckets::text[]) AS rate_bucket) p
)
INSERT INTO outbox (tenant_id, action_id, bucket_id, next_attempt_at, max_attempts, awaited)
SELECT @tenant_id, p.action_id, p.bucket_id, greatest(now(), sqlc.narg(not_before)::timestamptz), @max_attempts::integer, @awaited::boolean
FROM (SELECT unnest(@action_ids::uuid[]) AS action_id, unnest(@bucket_ids::bigint[]) AS bucket_id) p
WHERE @approval_state::text = 'auto';

-- name: ActionInsertMany :exec
-- Inserts a batch of decided envelopes and schedules those that may run, in one
-- statement. It has no ON CONFLICT, which would search both unique indexes
-- before each row and confirm afterwards: half as much work again for a rare
-- case. A duplicate name fails the batch. A column with the same value in all
-- rows is an array of one element: unnest returns NULL for the other rows, which
-- use that element. approval_expires is empty if no envelope of the batch needs
-- a person.
WITH given AS (
    SELECT
        unnest(@action_ids::uuid[]) AS action_id,
        unnest(@external_ids::text[]) AS external_id,
        unnest(@content_digests::bytea[]) AS content_digest,
        unnest(@args::jsonb[]) AS args,
        unnest(@employee_ids::uuid[]) AS employee_id,
        unnest(@automation_ids::text[]) AS automation_id,
        unnest(@session_ids::text[]) AS session_id,
        unnest(@source_ids::text[]) AS source_id,
        unnest(@tool_names::text[]) AS tool_name,
        unnest(@composio_apps::text[]) AS composio_app,
        unnest(@risks::text[]) AS risk,
        unnest(@effects::text[]) AS effect,
        unnest(@decision_ids::uuid[]) AS decision_id,
        unnest(@tool_digests::bytea[]) AS tool_digest,
        unnest(@approval_states::text[]) AS approval_state,
        unnest(@bucket_ids::bigint[]) AS bucket_id,
        unnest(@rate_buckets::text[]) AS rate_bucket,
        unnest(@not_befores::timestamptz[]) AS not_before,
        unnest(@must_run_befores::timestamptz[]) AS must_run_before,
        unnest(@max_attempts::integer[]) AS max_attempts,
        unnest(@urgent::boolean[]) AS urgent,
        unnest(@proposed_bys::uuid[]) AS proposed_by,
        unnest(@people::uuid[]) AS person,
        unnest(@origins::text[]) AS origin,
        unnest(@awaited::boolean[]) AS awaited,
        unnest(@traceparents::text[]) AS traceparent,
        unnest(@approval_expires::timestamptz[]) AS approval_expires_at
), proposed AS (
    SELECT
        g.action_id, g.external_id, g.content_digest, g.args,
        coalesce(g.employee_id, (@employee_ids::uuid[])[1]) AS employee_id,
        coalesce(g.automation_id, (@automation_ids::text[])[1]) AS automation_id,
        coalesce(g.session_id, (@session_ids::text[])[1]) AS session_id,
        coalesce(g.source_id, (@source_ids::text[])[1]) AS source_id,
        coalesce(g.tool_name, (@tool_names::text[])[1]) AS tool_name,
        coalesce(g.composio_app, (@composio_apps::text[])[1]) AS composio_app,
        coalesce(g.risk, (@risks::text[])[1]) AS risk,
        coalesce(g.effect, (@effects::text[])[1]) AS effect,
        coalesce(g.decision_id, (@decision_ids::uuid[])[1]) AS decision_id,
        coalesce(g.tool_digest, (@tool_digests::bytea[])[1]) AS tool_digest,
        coalesce(g.approval_state, (@approval_states::text[])[1]) AS approval_state,
        coalesce(g.bucket_id, (@bucket_ids::bigint[])[1]) AS bucket_id,
        coalesce(g.rate_bucket, (@rate_buckets::text[])[1]) AS rate_bucket,
        coalesce(g.not_before, (@not_befores::timestamptz[])[1]) AS not_before,
        coalesce(g.must_run_before, (@must_run_befores::timestamptz[])[1]) AS must_run_before,
        coalesce(g.max_attempts, (@max_attempts::integer[])[1]) AS max_attempts,
        coalesce(g.urgent, (@urgent::boolean[])[1]) AS urgent,
        coalesce(g.proposed_by, (@proposed_bys::uuid[])[1]) AS proposed_by,
        coalesce(g.person, (@people::uuid[])[1]) AS person,
        coalesce(g.origin, (@origins::text[])[1]) AS origin,
        coalesce(g.awaited, (@awaited::boolean[])[1]) AS awaited,
        coalesce(g.traceparent, (@traceparents::text[])[1]) AS traceparent,
        coalesce(g.approval_expires_at, (@approval_expires::timestamptz[])[1]) AS approval_expires_at
    FROM given g
), inserted_actions AS (
    INSERT INTO actions (
        tenant_id, action_id, external_id, content_digest, employee_id, session_id, automation_id, proposed_by, person,
        source_id, tool_name, composio_app, args, risk, effect, decision_id, config_version, tool_digest,
        approval_state, approval_expires_at, decision_note, bucket_id, rate_bucket, not_before, must_run_before, max_attempts, traceparent, urgent, origin, workflow_id)
    SELECT
        @tenant_id, p.action_id, nullif(p.external_id, ''), p.content_digest, nullif(p.employee_id, '00000000-0000-0000-0000-000000000000'),
        nullif(p.session_id, ''), nullif(p.automation_id, ''), nullif(p.proposed_by, '00000000-0000-0000-0000-000000000000'), nullif(p.person, '00000000-0000-0000-0000-000000000000'),
        p.source_id, p.tool_name, nullif(p.composio_app, ''), p.args, p.risk, p.effect, p.decision_id, @config_version, p.tool_digest,
        p.approval_state,
        CASE WHEN p.approval_state = 'required' THEN p.approval_expires_at END,
        CASE WHEN p.approval_state = 'denied' THEN 'policy' END,
        p.bucket_id, nullif(p.rate_bucket, ''),
        nullif(p.not_before, '0001-01-01 00:00:00+00'), nullif(p.must_run_before, '0001-01-01 00:00:00+00'), p.max_attempts, nullif(p.traceparent, ''), p.urgent,
        nullif(p.origin, '')::jsonb, sqlc.narg(workflow_id)::uuid
    FROM proposed p
)
INSERT INTO outbox (tenant_id, action_id, bucket_id, next_attempt_at, max_attempts, awaited)
SELECT @tenant_id, p.action_id, p.bucket_id, greatest(now(), nullif(p.not_before, '0001-01-01 00:00:00+00')), p.max_attempts, p.awaited
FROM proposed p
WHERE p.approval_state = 'auto';

-- name: ActionLastTurn :many
-- For each base, the newest envelope whose external id is the base followed by
-- digits between two bounds. Digits sort alike in all collations. Its status is
-- another query, since most calls have no envelope before them.
SELECT b.base::text AS base, n.external_id, n.action_id
FROM (SELECT unnest(@bases::text[]) AS base) b
CROSS JOIN LATERAL (
    SELECT a.external_id::text AS external_id, a.action_id
    FROM actions a
    WHERE a.tenant_id = @tenant_id AND a.external_id BETWEEN b.base || @first::text AND b.base || @last::text
    ORDER BY a.external_id DESC
    LIMIT 1
) n;

-- name: ActionWithdraw :one
-- Undoes an envelope that still waits for a decision.
WITH withdrawn AS (
    UPDATE actions a
    SET approval_state = 'denied', decided_at = now(), decided_by = @decided_by::text, decision_note = 'undone'
    WHERE a.tenant_id = @tenant_id AND a.action_id = @action_id AND a.approval_state = 'required'
    RETURNING a.tenant_id, a.action_id
), inserted_attempts AS (
    INSERT INTO tool_executions (tenant_id, action_id, attempt, status, code, message, finished_at)
    SELECT w.tenant_id, w.action_id, 0, 'skipped', 'undone', nullif(@message::text, ''), clock_timestamp()
    FROM withdrawn w
)
SELECT count(1)::bigint FROM withdrawn;

-- name: ActionsCancel :many
-- Ends actions that a kill covers and that wait for a decision. FOR UPDATE SKIP
-- LOCKED: the next sweep ends those that are being decided now.
WITH killed AS MATERIALIZED (
    SELECT a.tenant_id, a.action_id
    FROM actions a
    JOIN buckets b ON b.bucket_id = a.bucket_id
    WHERE a.approval_state = 'required'
        AND a.tenant_id BETWEEN @first_tenant AND @last_tenant
        AND CASE WHEN @scope::text = 'automation' THEN automation_proposed_at(a.tenant_id, a.external_id, a.created_at) ELSE a.created_at END <= @killed_at::timestamptz
        AND CASE WHEN @scope::text = 'automation' THEN automation_covers(@subject::text, a.tenant_id, a.automation_id, a.external_id)
            ELSE pause_covers(@scope::text, @subject::text, a.employee_id, a.source_id, a.tool_name, b.name) END
    LIMIT @most::bigint
    FOR UPDATE OF a SKIP LOCKED
), inserted_attempts AS (
    INSERT INTO tool_executions (tenant_id, action_id, attempt, status, code, message, finished_at)
    SELECT h.tenant_id, h.action_id, 0, 'skipped', 'killed', @message::text, clock_timestamp()
    FROM killed h
)
UPDATE actions a
SET approval_state = 'denied', decided_at = now(), decided_by = @decided_by::text, decision_note = @message::text
FROM killed h
WHERE a.tenant_id = h.tenant_id AND a.action_id = h.action_id
RETURNING a.tenant_id, a.action_id;

-- name: ActionsExpire :many
-- Expires overdue decisions. FOR UPDATE SKIP LOCKED: actions that are being
-- decided now are skipped.
WITH overdue AS (
    SELECT a.tenant_id, a.action_id
    FROM actions a
    WHERE a.approval_state = 'required' AND a.approval_expires_at <= now()
    ORDER BY a.approval_expires_at
    LIMIT @most::bigint
    FOR UPDATE SKIP LOCKED
)
UPDATE actions a
SET approval_state = 'expired', decided_at = now(), decided_by = 'system'
FROM overdue o
WHERE a.tenant_id = o.tenant_id AND a.action_id = o.action_id
RETURNING a.tenant_id, a.action_id;

-- name: ActionsKnown :many
-- The existing actions of a batch, by id or by external id. LIMIT makes the
-- planner use one index probe per name, regardless of its estimates. A row found
-- writes a record to the log where standbys are synchronous, so that the commit
-- waits for them, and for the commit that stored the action: that one may have
-- stopped waiting, and a failover would lose it.
SELECT f.action_id, f.external_id, f.content_digest, f.proposed_by, f.session_id
FROM (SELECT unnest(@action_ids::uuid[]) AS action_id) k
CROSS JOIN LATERAL (
    SELECT a.action_id, coalesce(a.external_id, '')::text AS external_id, a.content_digest, a.proposed_by, coalesce(a.session_id, '')::text AS session_id
    FROM actions a
    WHERE a.tenant_id = @tenant_id AND a.action_id = k.action_id
    LIMIT 1
) f
WHERE current_setting('synchronous_standby_names') = '' OR pg_logical_emit_message(true, 'countersign', '') IS NOT NULL
UNION
SELECT g.action_id, g.external_id, g.content_digest, g.proposed_by, g.session_id
FROM (SELECT unnest(@external_ids::text[]) AS external_id) k
CROSS JOIN LATERAL (
    SELECT a.action_id, coalesce(a.external_id, '')::text AS external_id, a.content_digest, a.proposed_by, coalesce(a.session_id, '')::text AS session_id
    FROM actions a
    WHERE a.tenant_id = @tenant_id AND a.external_id = k.external_id
    LIMIT 1
) g
WHERE current_setting('synchronous_standby_names') = '' OR pg_logical_emit_message(true, 'countersign', '') IS NOT NULL;

-- name: DecisionInsertMany :exec
-- Inserts decisions that the tenant does not have yet.
INSERT INTO decisions (tenant_id, decision_id, mode, mode_source, trace)
SELECT @tenant_id, unnest(@decision_ids::uuid[]), unnest(@modes::text[]), unnest(@mode_sources::text[]), unnest(@traces::jsonb[])
ON CONFLICT ON CONSTRAINT decisions_pkey DO NOTHING;
