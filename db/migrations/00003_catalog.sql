-- +goose Up

-- Sources (MCP servers and other providers) and the tools that they list.

CREATE TABLE sources (
    tenant_id        uuid        NOT NULL CONSTRAINT sources_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    source_id        text        NOT NULL,
    kind             text        NOT NULL CONSTRAINT sources_kind_check
        CHECK (kind IN ('mcp', 'builtin', 'tool_gateway', 'composio', 'slack', 'linear', 'sentry', 'webhook')),
    config           jsonb       NOT NULL DEFAULT '{}',
    secret           bytea,
    default_risk     text        CONSTRAINT sources_default_risk_check CHECK (default_risk IN ('read', 'write', 'danger')),
    enabled          boolean     NOT NULL DEFAULT true,
    listed_at        timestamptz,
    list_error       text,
    created_at       timestamptz NOT NULL DEFAULT now(),
    drift_guard      text        NOT NULL DEFAULT 'full' CONSTRAINT sources_drift_guard_check CHECK (drift_guard IN ('full', 'interface')),
    quarantine       boolean     NOT NULL DEFAULT true,
    known_at         timestamptz,
    left_out         integer     NOT NULL DEFAULT 0,
    left_out_tools   jsonb       NOT NULL DEFAULT '[]',
    refresh_asked_at timestamptz,
    list_failures    integer     NOT NULL DEFAULT 0,
    skipped_lines    bigint      NOT NULL DEFAULT 0,
    accepted_address bytea,
    generation       uuid        NOT NULL DEFAULT gen_random_uuid(),
    CONSTRAINT sources_pkey PRIMARY KEY (tenant_id, source_id),
    CONSTRAINT sources_source_id_check CHECK (source_id ~ '^[a-z0-9][a-z0-9_.-]{0,99}$')
);
COMMENT ON COLUMN sources.secret IS 'Header values, environment values and named credentials, encrypted with AES-256-GCM. Only workers decrypt them.';
COMMENT ON COLUMN sources.list_error IS 'Error of the last listing of tools; NULL if it succeeded.';
COMMENT ON COLUMN sources.drift_guard IS 'Which changes of tool definitions must be accepted by an operator: full means every change, interface ignores changes of descriptive text.';
COMMENT ON COLUMN sources.quarantine IS 'Whether new tools must be accepted by an operator before use. Tools of the first listing are accepted automatically.';
COMMENT ON COLUMN sources.known_at IS 'Time of the first listing that had tools; NULL before it.';
COMMENT ON COLUMN sources.left_out IS 'Number of tools that the last listing omitted because their name is not usable in an envelope or their definition cannot be used.';
COMMENT ON COLUMN sources.left_out_tools IS 'Names of the first of these tools, and the reasons.';
COMMENT ON COLUMN sources.list_failures IS 'Number of listings in a row that failed. The next one is made 5 s after the first failure, and after twice as long each time.';
COMMENT ON COLUMN sources.skipped_lines IS 'Number of lines of output that were no messages, since the process that listed the source last opened it.';
COMMENT ON COLUMN sources.accepted_address IS 'Digest of the kind and the address that an administrator accepted: those at the registration, or later ones. While the present ones differ, all tools of the source have drifted.';
COMMENT ON COLUMN sources.generation IS 'Another one each time the credentials change. An approval is for one generation.';
COMMENT ON COLUMN sources.refresh_asked_at IS 'Time of the last request for an immediate listing. A listing is due while this is later than listed_at.';
CREATE TRIGGER sources_bump_insert AFTER INSERT ON sources REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER sources_bump_update AFTER UPDATE ON sources FOR EACH ROW
    WHEN ((OLD.kind, OLD.config, OLD.secret, OLD.default_risk, OLD.enabled, OLD.drift_guard, OLD.quarantine, OLD.list_error IS NULL, OLD.accepted_address, OLD.generation)
        IS DISTINCT FROM
            (NEW.kind, NEW.config, NEW.secret, NEW.default_risk, NEW.enabled, NEW.drift_guard, NEW.quarantine, NEW.list_error IS NULL, NEW.accepted_address, NEW.generation))
    EXECUTE FUNCTION bump_config_version_row();
CREATE TRIGGER sources_bump_delete AFTER DELETE ON sources REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();

-- A tool that its source no longer lists stays here with gone_at set. If the
-- source lists it again, the operator's settings and the accepted definition
-- still apply, and it does not count as a new tool.
CREATE TABLE tools (
    tenant_id          uuid        NOT NULL,
    source_id          text        NOT NULL,
    name               text        NOT NULL,
    title              text        NOT NULL DEFAULT '',
    description        text        NOT NULL DEFAULT '',
    input_schema       jsonb       NOT NULL,
    output_schema      jsonb,
    hints              jsonb       NOT NULL DEFAULT '{}',
    effect             text        CONSTRAINT tools_effect_check CHECK (effect IN ('read', 'idempotent', 'keyed', 'once')),
    digest             bytea       NOT NULL,
    accepted_digest    bytea,
    risk_override      text        CONSTRAINT tools_risk_override_check CHECK (risk_override IN ('read', 'write', 'danger')),
    effect_override    text        CONSTRAINT tools_effect_override_check CHECK (effect_override IN ('read', 'idempotent', 'keyed', 'once')),
    max_attempts       integer     CONSTRAINT tools_max_attempts_check CHECK (max_attempts BETWEEN 1 AND 100),
    listed_at          timestamptz NOT NULL DEFAULT now(),
    recipients         text[],
    scopes             text[]      NOT NULL DEFAULT '{}',
    retry_base_seconds float8,
    retry_cap_seconds  float8,
    retry_jitter       float8,
    timeout_seconds    float8      CONSTRAINT tools_timeout_check CHECK (timeout_seconds BETWEEN 1 AND 3600),
    reconcile          jsonb,
    accepted           jsonb,
    gone_at            timestamptz,
    retry_max_attempts integer     CONSTRAINT tools_retry_max_attempts_check CHECK (retry_max_attempts BETWEEN 1 AND 100),
    module             text,
    entity             text,
    action             text,
    side_effects       text[],
    reversal           jsonb,
    CONSTRAINT tools_pkey PRIMARY KEY (tenant_id, source_id, name),
    CONSTRAINT tools_source_id_fkey FOREIGN KEY (tenant_id, source_id) REFERENCES sources (tenant_id, source_id) ON DELETE CASCADE,
    CONSTRAINT tools_retry_check CHECK (
        retry_base_seconds BETWEEN 0.001 AND 86400 AND retry_cap_seconds BETWEEN 0.001 AND 604800 AND retry_jitter BETWEEN 0 AND 1),
    CONSTRAINT tools_name_parts_check CHECK (
        module ~ '^[a-z0-9][a-z0-9_-]{0,99}$' AND entity ~ '^[a-z0-9][a-z0-9_-]{0,99}$' AND action ~ '^[a-z0-9][a-z0-9_-]{0,99}$')
);
COMMENT ON COLUMN tools.effect IS 'Effect class guaranteed by the adapter, not by the server; NULL if the adapter guarantees none.';
COMMENT ON COLUMN tools.digest IS 'Digest of the definition that the source lists now.';
COMMENT ON COLUMN tools.accepted_digest IS 'Digest of the accepted definition: the first one listed, or the last one that an operator accepted; NULL for a new tool in quarantine. While it differs from digest, allow becomes require_approval.';
COMMENT ON COLUMN tools.max_attempts IS 'Maximum number of attempts set with the overrides. retry_max_attempts, set with the retry rule, takes precedence.';
COMMENT ON COLUMN tools.recipients IS 'JSON Pointer patterns of the arguments that hold recipients; NULL while they are inferred from the schema.';
COMMENT ON COLUMN tools.scopes IS 'Scopes that an employee needs to use the tool.';
COMMENT ON COLUMN tools.reconcile IS 'How to find out whether a call happened: a read tool of the same source, its arguments, and where in its result the outcome is; NULL if there is no such tool.';
COMMENT ON COLUMN tools.accepted IS 'Definition that accepted_digest was computed from; NULL while none is accepted.';
COMMENT ON COLUMN tools.gone_at IS 'Time since which the source no longer lists the tool; NULL while it does. The tool cannot be used meanwhile.';
COMMENT ON COLUMN tools.module IS 'First part of the name module.entity.action; NULL, like entity and action, while it is inferred.';
COMMENT ON COLUMN tools.side_effects IS 'What a call changes, described by an operator; NULL while it is inferred.';
COMMENT ON COLUMN tools.reversal IS 'How to revert a call: {tool, args} of a call of another tool; NULL if there is none.';
CREATE TRIGGER tools_bump_insert AFTER INSERT ON tools REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER tools_bump_update AFTER UPDATE ON tools FOR EACH ROW
    WHEN ((OLD.effect, OLD.digest, OLD.accepted_digest, OLD.risk_override, OLD.effect_override, OLD.max_attempts, OLD.input_schema, OLD.output_schema, OLD.hints,
            OLD.recipients, OLD.scopes, OLD.retry_base_seconds, OLD.retry_cap_seconds, OLD.retry_jitter, OLD.retry_max_attempts, OLD.timeout_seconds,
            OLD.gone_at, OLD.module, OLD.entity, OLD.action, OLD.side_effects, OLD.reversal)
        IS DISTINCT FROM (NEW.effect, NEW.digest, NEW.accepted_digest, NEW.risk_override, NEW.effect_override, NEW.max_attempts, NEW.input_schema, NEW.output_schema, NEW.hints,
            NEW.recipients, NEW.scopes, NEW.retry_base_seconds, NEW.retry_cap_seconds, NEW.retry_jitter, NEW.retry_max_attempts, NEW.timeout_seconds,
            NEW.gone_at, NEW.module, NEW.entity, NEW.action, NEW.side_effects, NEW.reversal))
    EXECUTE FUNCTION bump_config_version_row();
CREATE TRIGGER tools_bump_delete AFTER DELETE ON tools REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();

-- A snapshot rule names the read tool that captures the state before and after
-- a call of a tool.
CREATE TABLE snapshot_rules (
    tenant_id uuid  NOT NULL,
    source_id text  NOT NULL,
    tool_name text  NOT NULL,
    rule      jsonb NOT NULL,
    CONSTRAINT snapshot_rules_pkey PRIMARY KEY (tenant_id, source_id, tool_name),
    CONSTRAINT snapshot_rules_source_id_fkey FOREIGN KEY (tenant_id, source_id) REFERENCES sources (tenant_id, source_id) ON DELETE CASCADE
);
COMMENT ON TABLE snapshot_rules IS 'A table of its own, without a foreign key to tools: a rule stays while its tool is missing from a listing.';
CREATE TRIGGER snapshot_rules_bump_insert AFTER INSERT ON snapshot_rules REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER snapshot_rules_bump_update AFTER UPDATE ON snapshot_rules REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER snapshot_rules_bump_delete AFTER DELETE ON snapshot_rules REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();

-- A circuit breaker, shared by all workers. The row is created when a breaker
-- first opens or a provider first asks to be called later.
CREATE TABLE breakers (
    tenant_id  uuid        NOT NULL,
    source_id  text        NOT NULL,
    state      text        NOT NULL CONSTRAINT breakers_state_check CHECK (state IN ('closed', 'open', 'half-open')),
    cause      text        NOT NULL,
    since      timestamptz NOT NULL DEFAULT now(),
    open_until timestamptz NOT NULL,
    openings   integer     NOT NULL DEFAULT 1,
    worker     text        NOT NULL,
    CONSTRAINT breakers_pkey PRIMARY KEY (tenant_id, source_id),
    CONSTRAINT breakers_source_id_fkey FOREIGN KEY (tenant_id, source_id) REFERENCES sources (tenant_id, source_id) ON DELETE CASCADE
);
COMMENT ON COLUMN breakers.open_until IS 'While open: when a probe call may be made. While half-open: when the worker that makes the probe call is considered lost.';
COMMENT ON COLUMN breakers.openings IS 'Number of times it opened since it was last closed.';

-- Row-level security: the same two policies for every table.
-- +goose StatementBegin
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['sources', 'tools', 'snapshot_rules', 'breakers'] LOOP
        EXECUTE format('ALTER TABLE %I OWNER TO countersign_owner', t);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_api USING (tenant_id = (SELECT current_tenant())) WITH CHECK (tenant_id = (SELECT current_tenant()))', t || '_api', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_worker USING (true) WITH CHECK (true)', t || '_worker', t);
    END LOOP;
END
$$;
-- +goose StatementEnd

GRANT SELECT, INSERT, UPDATE, DELETE ON sources, tools, snapshot_rules TO countersign_api;
GRANT SELECT, UPDATE ON breakers TO countersign_api;

GRANT SELECT, UPDATE ON sources TO countersign_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON tools, breakers TO countersign_worker;
GRANT SELECT ON snapshot_rules TO countersign_worker;
