-- +goose Up

-- Roles. They belong to the cluster, not to this database, so another
-- database's migration may have made them already, or be making them now.
-- None can log in: a deployment grants them to its own login users, and
-- every transaction takes one on with SET LOCAL ROLE.
-- +goose StatementBegin
DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['countersign_owner', 'countersign_api', 'countersign_worker', 'countersign_triage'] LOOP
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN NOSUPERUSER NOBYPASSRLS', wanted);
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL;
        END;
        IF NOT pg_has_role(current_user, wanted, 'MEMBER') THEN
            EXECUTE format('GRANT %I TO CURRENT_USER', wanted);
        END IF;
    END LOOP;
END
$$;
-- +goose StatementEnd

-- The tenant that this transaction speaks for; NULL when none was set, which
-- matches no row.
-- +goose StatementBegin
CREATE FUNCTION current_tenant() RETURNS uuid
    LANGUAGE sql STABLE PARALLEL SAFE
RETURN nullif(current_setting('countersign.tenant_id', true), '')::uuid;
-- +goose StatementEnd

CREATE TABLE tenants (
    tenant_id      uuid        NOT NULL CONSTRAINT tenants_pkey PRIMARY KEY,
    name           text        NOT NULL CONSTRAINT tenants_name_key UNIQUE,
    config_version bigint      NOT NULL DEFAULT 1,
    created_at     timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT tenants_name_check CHECK (name ~ '^[a-z0-9][a-z0-9-]{0,62}$')
);
COMMENT ON COLUMN tenants.config_version IS
    'Goes up with every change of sources, tools or policy. A decision names the version it was made under; a worker that sees another one decides again.';

CREATE TABLE api_tokens (
    token_id    uuid        NOT NULL CONSTRAINT api_tokens_pkey PRIMARY KEY,
    tenant_id   uuid        NOT NULL CONSTRAINT api_tokens_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    name        text        NOT NULL,
    role        text        NOT NULL CONSTRAINT api_tokens_role_check CHECK (role IN ('agent', 'operator', 'admin')),
    token_hash  bytea       NOT NULL CONSTRAINT api_tokens_token_hash_key UNIQUE,
    employee_id uuid,
    session_id  text,
    created_at  timestamptz NOT NULL DEFAULT now(),
    expires_at  timestamptz,
    revoked_at  timestamptz
);
COMMENT ON COLUMN api_tokens.token_hash IS 'SHA-256 of the token. A token holds 256 random bits, so a slow hash would add nothing.';

CREATE TABLE sources (
    tenant_id    uuid        NOT NULL CONSTRAINT sources_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    source_id    text        NOT NULL,
    kind         text        NOT NULL CONSTRAINT sources_kind_check CHECK (kind IN ('mcp', 'builtin')),
    config       jsonb       NOT NULL DEFAULT '{}',
    secret       bytea,
    default_risk text        CONSTRAINT sources_default_risk_check CHECK (default_risk IN ('read', 'write', 'danger')),
    enabled      boolean     NOT NULL DEFAULT true,
    listed_at    timestamptz,
    list_error   text,
    created_at   timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT sources_pkey PRIMARY KEY (tenant_id, source_id),
    CONSTRAINT sources_source_id_check CHECK (source_id ~ '^[a-z0-9][a-z0-9_.-]{0,99}$')
);
COMMENT ON COLUMN sources.secret IS 'Header and environment values, sealed with AES-256-GCM. Opened only in the worker.';
COMMENT ON COLUMN sources.list_error IS 'Why the last listing failed; NULL when it worked.';

CREATE TABLE tools (
    tenant_id       uuid        NOT NULL,
    source_id       text        NOT NULL,
    name            text        NOT NULL,
    title           text        NOT NULL DEFAULT '',
    description     text        NOT NULL DEFAULT '',
    input_schema    jsonb       NOT NULL,
    output_schema   jsonb,
    hints           jsonb       NOT NULL DEFAULT '{}',
    effect          text        CONSTRAINT tools_effect_check CHECK (effect IN ('read', 'idempotent', 'keyed', 'once')),
    digest          bytea       NOT NULL,
    accepted_digest bytea,
    risk_override   text        CONSTRAINT tools_risk_override_check CHECK (risk_override IN ('read', 'write', 'danger')),
    effect_override text        CONSTRAINT tools_effect_override_check CHECK (effect_override IN ('read', 'idempotent', 'keyed', 'once')),
    max_attempts    integer     CONSTRAINT tools_max_attempts_check CHECK (max_attempts BETWEEN 1 AND 100),
    listed_at       timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT tools_pkey PRIMARY KEY (tenant_id, source_id, name),
    CONSTRAINT tools_source_id_fkey FOREIGN KEY (tenant_id, source_id) REFERENCES sources (tenant_id, source_id) ON DELETE CASCADE
);
COMMENT ON COLUMN tools.effect IS 'What the adapter, not the server, vouches for; NULL when it vouches for nothing.';
COMMENT ON COLUMN tools.digest IS 'Of the definition as the source lists it now.';
COMMENT ON COLUMN tools.accepted_digest IS 'Of the definition that an operator accepted; NULL until one did. While it differs from digest, allow becomes require_approval.';

-- One row per rule. automation_id is '' for the organisation's default.
-- mode has no CHECK on purpose: a value that this version cannot read must be
-- storable, and is then denied as unknown_mode:<value>.
CREATE TABLE policy_modes (
    tenant_id     uuid        NOT NULL CONSTRAINT policy_modes_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    automation_id text        NOT NULL DEFAULT '',
    key           text        NOT NULL,
    mode          text        NOT NULL,
    updated_at    timestamptz NOT NULL DEFAULT now(),
    updated_by    text        NOT NULL DEFAULT '',
    CONSTRAINT policy_modes_pkey PRIMARY KEY (tenant_id, automation_id, key)
);

-- A bucket is the unit of fairness: the claim takes due rows per bucket.
CREATE TABLE buckets (
    bucket_id    bigint      NOT NULL GENERATED ALWAYS AS IDENTITY CONSTRAINT buckets_pkey PRIMARY KEY,
    tenant_id    uuid        NOT NULL CONSTRAINT buckets_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    name         text        NOT NULL,
    closed_until timestamptz,
    CONSTRAINT buckets_tenant_id_name_key UNIQUE (tenant_id, name)
);
COMMENT ON COLUMN buckets.closed_until IS 'Nothing of this bucket is claimed before then; NULL when it is open.';

-- What policy said, with what every layer said. A tenant has few distinct
-- decisions, however many envelopes it decides about, so each is kept once
-- under the digest of its content, and never changed.
CREATE TABLE decisions (
    tenant_id   uuid  NOT NULL,
    decision_id uuid  NOT NULL,
    mode        text  NOT NULL CONSTRAINT decisions_mode_check CHECK (mode IN ('allow', 'require_approval', 'deny')),
    mode_source text  NOT NULL,
    trace       jsonb NOT NULL,
    CONSTRAINT decisions_pkey PRIMARY KEY (tenant_id, decision_id)
);
COMMENT ON COLUMN decisions.decision_id IS 'The first 16 bytes of the SHA-256 of mode, source and trace.';

-- An envelope as it was proposed, and what was decided about it. Written once
-- on the hot path; only a decision by a person updates it. It has no foreign
-- keys: a check per row would cost more than the insert, and tenants are
-- never deleted: no role is granted it.
CREATE TABLE actions (
    tenant_id           uuid        NOT NULL,
    action_id           uuid        NOT NULL,
    external_id         text,
    content_digest      bytea       NOT NULL,
    employee_id         uuid,
    session_id          text,
    automation_id       text,
    proposed_by         uuid,
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
    CONSTRAINT actions_pkey PRIMARY KEY (tenant_id, action_id),
    CONSTRAINT actions_approval_expires_at_check CHECK (approval_state <> 'required' OR approval_expires_at IS NOT NULL)
) WITH (fillfactor = 95);
CREATE UNIQUE INDEX actions_external_id_key ON actions (tenant_id, external_id) WHERE external_id IS NOT NULL;
CREATE INDEX actions_awaiting_approval ON actions (approval_expires_at) WHERE approval_state = 'required';

-- Envelopes that may run and have not ended. Narrow, and small: the row goes
-- when the envelope ends. The claim changes lease_until, fence and lost,
-- which no index holds, so that a claim is a heap-only update; hence the
-- fill factor, and an index that covers leased rows too.
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
COMMENT ON COLUMN outbox.lease_until IS 'A worker holds the row until then; NULL or past when none does.';
COMMENT ON COLUMN outbox.fence IS 'Goes up with every claim and every settlement, and starts above the last one when an envelope comes back. Settling needs the number of the claim, so a worker that lost its lease settles nothing.';
COMMENT ON COLUMN outbox.attempt IS 'Attempts that were made and counted.';
COMMENT ON COLUMN outbox.lost IS 'Leases that ran out on this row. An envelope that keeps killing its worker ends as a dead letter.';
COMMENT ON COLUMN outbox.unsure IS 'An attempt was sent and got no usable answer: the effect may be there.';
COMMENT ON COLUMN outbox.status IS 'sending: committed just before the bytes of a call of class once go out. A lease that runs out on such a row means that nobody knows what happened.';

-- The ledger: one row for every attempt, and for every end without one.
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
COMMENT ON COLUMN tool_executions.status IS 'What the envelope became by it: pending when it will be tried again, else how it ended.';
COMMENT ON COLUMN tool_executions.result IS 'Redacted, then truncated to valid JSON, before it comes here. json, not jsonb, so that what a tool said can always be stored.';

-- Makes the monthly partitions of the ledger from the current month to
-- some months ahead. There is no default partition: rows in one would stand
-- in the way of the month they belong to.
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
            EXECUTE format(
                'CREATE TABLE public.tool_executions_%s PARTITION OF public.tool_executions FOR VALUES FROM (%L) TO (%L)',
                to_char(first_day, 'YYYYMM'),
                first_day::text || ' 00:00:00+00',
                (first_day + interval '1 month')::date::text || ' 00:00:00+00');
            made := made + 1;
        END IF;
    END LOOP;
    RETURN made;
EXCEPTION WHEN duplicate_table THEN
    -- Somebody else makes them at this moment; ours are rolled back.
    RETURN 0;
END
$$;
-- +goose StatementEnd

CREATE TABLE dead_letters (
    tenant_id  uuid        NOT NULL,
    action_id  uuid        NOT NULL,
    reason     text        NOT NULL CONSTRAINT dead_letters_reason_check CHECK (reason IN ('refused', 'exhausted', 'unknown')),
    attempt    integer     NOT NULL,
    code       text,
    message    text,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT dead_letters_pkey PRIMARY KEY (tenant_id, action_id)
);
COMMENT ON TABLE dead_letters IS 'Envelopes that ended without the effect, or without anyone knowing, and wait for an operator: replay, discard, or (unknown) say what happened.';

-- What happened, in the order in which it was committed, for streams and for
-- the audit. One row covers a whole batch of one tenant.
CREATE TABLE events (
    event_id  bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    tenant_id uuid        NOT NULL,
    txid      xid8        NOT NULL DEFAULT pg_current_xact_id(),
    at        timestamptz NOT NULL DEFAULT now(),
    kind      text        NOT NULL,
    actor     text        NOT NULL,
    items     jsonb       NOT NULL,
    CONSTRAINT events_pkey PRIMARY KEY (tenant_id, txid, event_id)
);
COMMENT ON COLUMN events.txid IS 'A reader goes by (txid, event_id) and stops at the oldest transaction still open, so that a slow commit is never skipped.';

-- What a reader sees: the envelope, where it stands, and how it ended.
CREATE VIEW envelopes WITH (security_invoker = true) AS
SELECT
    a.tenant_id, a.action_id, a.external_id, a.employee_id, a.session_id, a.automation_id, a.proposed_by,
    a.source_id, a.tool_name, a.composio_app, a.args, a.risk, a.effect, d.mode, d.mode_source, d.trace,
    a.config_version, a.tool_digest, a.approval_state, a.approval_expires_at, a.decided_at, a.decided_by, a.decision_note,
    a.rate_bucket, a.not_before, a.must_run_before, a.traceparent, a.created_at,
    CASE
        WHEN o.action_id IS NOT NULL THEN
            CASE WHEN o.status = 'sending' OR (a.effect <> 'once' AND o.lease_until > now()) THEN 'sending' ELSE 'pending' END
        -- What waits for a decision, or was refused, may have ended before
        -- and been replayed: the ledger's last row is of then.
        WHEN a.approval_state = 'required' THEN 'pending'
        WHEN a.approval_state IN ('denied', 'expired') THEN 'skipped'
        WHEN l.status IS NOT NULL THEN l.status
        ELSE 'pending'
    END AS status,
    coalesce(o.attempt, l.attempt, 0) AS attempt,
    o.next_attempt_at,
    l.code, l.message, l.result, l.provider_id, l.started_at, l.finished_at
FROM actions a
JOIN decisions d ON d.tenant_id = a.tenant_id AND d.decision_id = a.decision_id
LEFT JOIN outbox o ON o.tenant_id = a.tenant_id AND o.action_id = a.action_id
LEFT JOIN LATERAL (
    SELECT e.status, e.attempt, e.code, e.message, e.result, e.provider_id, e.started_at, e.finished_at
    FROM tool_executions e
    WHERE e.tenant_id = a.tenant_id AND e.action_id = a.action_id
    ORDER BY e.finished_at DESC, e.attempt DESC
    LIMIT 1
) l ON true;

-- The version of a tenant's configuration goes up by itself, so that no code
-- path can forget it.
-- +goose StatementBegin
CREATE FUNCTION bump_config_version() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    UPDATE tenants SET config_version = config_version + 1
    WHERE tenant_id IN (SELECT changed.tenant_id FROM changed);
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER sources_bump_insert AFTER INSERT ON sources REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER sources_bump_delete AFTER DELETE ON sources REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER tools_bump_insert AFTER INSERT ON tools REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER tools_bump_delete AFTER DELETE ON tools REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER policy_modes_bump_insert AFTER INSERT ON policy_modes REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER policy_modes_bump_update AFTER UPDATE ON policy_modes REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER policy_modes_bump_delete AFTER DELETE ON policy_modes REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();

-- Sources and tools are written again at every listing; only what matters to
-- a decision or a call counts as a change.
-- +goose StatementBegin
CREATE FUNCTION bump_config_version_row() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    UPDATE tenants SET config_version = config_version + 1 WHERE tenant_id = NEW.tenant_id;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER sources_bump_update AFTER UPDATE ON sources FOR EACH ROW
    WHEN ((OLD.kind, OLD.config, OLD.secret, OLD.default_risk, OLD.enabled)
        IS DISTINCT FROM (NEW.kind, NEW.config, NEW.secret, NEW.default_risk, NEW.enabled))
    EXECUTE FUNCTION bump_config_version_row();
CREATE TRIGGER tools_bump_update AFTER UPDATE ON tools FOR EACH ROW
    WHEN ((OLD.effect, OLD.digest, OLD.accepted_digest, OLD.risk_override, OLD.effect_override, OLD.max_attempts, OLD.input_schema, OLD.hints)
        IS DISTINCT FROM (NEW.effect, NEW.digest, NEW.accepted_digest, NEW.risk_override, NEW.effect_override, NEW.max_attempts, NEW.input_schema, NEW.hints))
    EXECUTE FUNCTION bump_config_version_row();

-- Finds the token before its tenant is known: the one look across tenants
-- that the API role has.
-- +goose StatementBegin
CREATE FUNCTION authenticate(hash bytea)
    RETURNS TABLE (token_id uuid, tenant_id uuid, name text, role text, employee_id uuid, session_id text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT t.token_id, t.tenant_id, t.name, t.role, t.employee_id, t.session_id
    FROM api_tokens t
    WHERE t.token_hash = hash
        AND t.revoked_at IS NULL
        AND (t.expires_at IS NULL OR t.expires_at > now())
$$;
-- +goose StatementEnd

SELECT ensure_partitions(2);

-- Row-level security: forced, so that not even the owner sees past it.
-- +goose StatementBegin
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['tenants', 'api_tokens', 'sources', 'tools', 'policy_modes', 'buckets', 'decisions', 'actions', 'outbox',
                             'tool_executions', 'dead_letters', 'events'] LOOP
        EXECUTE format('ALTER TABLE %I OWNER TO countersign_owner', t);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_api USING (tenant_id = (SELECT current_tenant())) WITH CHECK (tenant_id = (SELECT current_tenant()))', t || '_api', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_worker USING (true) WITH CHECK (true)', t || '_worker', t);
    END LOOP;
    -- The sub-select has the setting read once a statement, not once a row.
    -- Reading a partition by its own name would step around its parent's
    -- policies; nobody is granted that.
END
$$;
-- +goose StatementEnd
ALTER VIEW envelopes OWNER TO countersign_owner;
ALTER FUNCTION ensure_partitions(integer) OWNER TO countersign_owner;
ALTER FUNCTION bump_config_version() OWNER TO countersign_owner;
ALTER FUNCTION bump_config_version_row() OWNER TO countersign_owner;
ALTER FUNCTION authenticate(bytea) OWNER TO countersign_owner;
-- +goose StatementBegin
DO $$
DECLARE
    p regclass;
BEGIN
    FOR p IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'tool_executions'::regclass LOOP
        EXECUTE format('ALTER TABLE %s OWNER TO countersign_owner', p);
    END LOOP;
    EXECUTE format('GRANT CREATE, USAGE ON SCHEMA %I TO countersign_owner', current_schema());
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO countersign_api, countersign_worker, countersign_triage', current_schema());
END
$$;
-- +goose StatementEnd

-- The functions above run as the owner, whom FORCE would otherwise blind.
CREATE POLICY tenants_owner_bump ON tenants TO countersign_owner USING (true) WITH CHECK (true);
CREATE POLICY api_tokens_owner_authenticate ON api_tokens FOR SELECT TO countersign_owner USING (true);

REVOKE EXECUTE ON FUNCTION authenticate(bytea), ensure_partitions(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION authenticate(bytea) TO countersign_api;
GRANT EXECUTE ON FUNCTION ensure_partitions(integer) TO countersign_worker;

GRANT SELECT ON envelopes TO countersign_api, countersign_worker;
GRANT SELECT ON tenants TO countersign_api;
GRANT SELECT, INSERT, UPDATE ON api_tokens TO countersign_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON sources, tools, policy_modes TO countersign_api;
GRANT SELECT, INSERT ON buckets, decisions TO countersign_api;
GRANT SELECT, INSERT, UPDATE ON actions TO countersign_api;
GRANT SELECT, INSERT, DELETE, UPDATE ON outbox TO countersign_api;
GRANT SELECT, INSERT ON tool_executions, events TO countersign_api;
GRANT SELECT, DELETE, UPDATE ON dead_letters TO countersign_api;

GRANT SELECT ON tenants, policy_modes, decisions TO countersign_worker;
GRANT SELECT, UPDATE ON sources, actions, buckets TO countersign_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON tools, outbox TO countersign_worker;
GRANT SELECT, INSERT ON tool_executions, events TO countersign_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON dead_letters TO countersign_worker;
