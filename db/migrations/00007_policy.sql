-- +goose Up

-- A rule that is set anew has another version, also after it was deleted: the
-- version that the tenant's configuration has as of this very change. Every
-- step of a trace carries it.
-- +goose StatementBegin
CREATE FUNCTION stamp_policy_version() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    NEW.version := coalesce((SELECT t.config_version + 1 FROM tenants t WHERE t.tenant_id = NEW.tenant_id), 1);
    RETURN NEW;
END
$$;
-- +goose StatementEnd
ALTER FUNCTION stamp_policy_version() OWNER TO countersign_owner;

ALTER TABLE policy_modes ADD COLUMN version bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN policy_modes.version IS 'The tenant''s config_version as of the last change of the row; 0 where that was before versions were kept.';

-- Rules about arguments. mode and key have no CHECK, and neither has
-- expression, for the reason that policy_modes.mode has none: what this
-- version cannot read must be storable, and denies.
CREATE TABLE policy_rules (
    tenant_id     uuid        NOT NULL CONSTRAINT policy_rules_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    rule_id       text        NOT NULL,
    automation_id text        NOT NULL DEFAULT '',
    key           text        NOT NULL,
    expression    text        NOT NULL,
    mode          text        NOT NULL,
    reason        text        NOT NULL DEFAULT '',
    enabled       boolean     NOT NULL DEFAULT true,
    version       bigint      NOT NULL DEFAULT 0,
    updated_at    timestamptz NOT NULL DEFAULT now(),
    updated_by    text        NOT NULL DEFAULT '',
    CONSTRAINT policy_rules_pkey PRIMARY KEY (tenant_id, rule_id),
    CONSTRAINT policy_rules_rule_id_check CHECK (rule_id ~ '^[a-z0-9][a-z0-9_.-]{0,99}$')
);
COMMENT ON COLUMN policy_rules.automation_id IS 'Empty for a rule of the organisation.';
COMMENT ON COLUMN policy_rules.expression IS 'CEL over the arguments and the proposal. True, and failing, mean that mode applies.';
COMMENT ON COLUMN policy_rules.mode IS 'require_approval or deny: a rule about arguments narrows.';

-- What one session may do, while it lasts.
CREATE TABLE session_modes (
    tenant_id  uuid        NOT NULL CONSTRAINT session_modes_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    session_id text        NOT NULL,
    key        text        NOT NULL,
    mode       text        NOT NULL,
    expires_at timestamptz NOT NULL,
    version    bigint      NOT NULL DEFAULT 0,
    updated_at timestamptz NOT NULL DEFAULT now(),
    updated_by text        NOT NULL DEFAULT '',
    CONSTRAINT session_modes_pkey PRIMARY KEY (tenant_id, session_id, key)
);
CREATE INDEX session_modes_expires_at ON session_modes (expires_at);

-- What users switched off. There are no rows for what is on.
CREATE TABLE preferences (
    tenant_id   uuid        NOT NULL CONSTRAINT preferences_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    employee_id uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    key         text        NOT NULL,
    enabled     boolean     NOT NULL DEFAULT false CONSTRAINT preferences_enabled_check CHECK (NOT enabled),
    version     bigint      NOT NULL DEFAULT 0,
    updated_at  timestamptz NOT NULL DEFAULT now(),
    updated_by  text        NOT NULL DEFAULT '',
    CONSTRAINT preferences_pkey PRIMARY KEY (tenant_id, employee_id, key)
);
COMMENT ON COLUMN preferences.employee_id IS 'The zero UUID is everybody of the tenant.';

-- Always-allow: what a person let through beforehand. A grant turns
-- require_approval into allow, and never turns deny.
CREATE TABLE grants (
    tenant_id     uuid        NOT NULL CONSTRAINT grants_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    grant_id      uuid        NOT NULL,
    source_id     text        NOT NULL,
    tool_name     text        NOT NULL,
    tool_digest   bytea       NOT NULL,
    employee_id   uuid,
    session_id    text,
    automation_id text,
    pins          jsonb       NOT NULL DEFAULT '{}' CONSTRAINT grants_pins_check CHECK (jsonb_typeof(pins) = 'object'),
    reason        text        NOT NULL DEFAULT '',
    from_action   uuid,
    created_at    timestamptz NOT NULL DEFAULT now(),
    created_by    text        NOT NULL DEFAULT '',
    expires_at    timestamptz NOT NULL,
    revoked_at    timestamptz,
    revoked_by    text,
    lapsed_at     timestamptz,
    version       bigint      NOT NULL DEFAULT 0,
    CONSTRAINT grants_pkey PRIMARY KEY (tenant_id, grant_id),
    CONSTRAINT grants_expires_at_check CHECK (expires_at > created_at AND expires_at <= created_at + interval '90 days')
);
CREATE INDEX grants_live ON grants (tenant_id, expires_at) WHERE revoked_at IS NULL AND lapsed_at IS NULL;
COMMENT ON COLUMN grants.pins IS 'JSON Pointers into the arguments, each with the value that must be there.';
COMMENT ON COLUMN grants.tool_digest IS 'The definition of the tool that the person saw. With another one the grant does not hold.';
COMMENT ON COLUMN grants.from_action IS 'The envelope whose approval made it; NULL when it was made by itself.';
COMMENT ON COLUMN grants.lapsed_at IS 'When upkeep noted that it has expired, so that the tenant''s config_version went up.';

-- +goose StatementBegin
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['policy_modes', 'policy_rules', 'session_modes', 'preferences', 'grants'] LOOP
        EXECUTE format('CREATE TRIGGER %I BEFORE INSERT OR UPDATE ON %I FOR EACH ROW EXECUTE FUNCTION stamp_policy_version()', t || '_stamp', t);
        CONTINUE WHEN t = 'policy_modes';
        EXECUTE format('CREATE TRIGGER %I AFTER INSERT ON %I REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version()', t || '_bump_insert', t);
        EXECUTE format('CREATE TRIGGER %I AFTER UPDATE ON %I REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version()', t || '_bump_update', t);
        EXECUTE format('CREATE TRIGGER %I AFTER DELETE ON %I REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version()', t || '_bump_delete', t);
        EXECUTE format('ALTER TABLE %I OWNER TO countersign_owner', t);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_api USING (tenant_id = (SELECT current_tenant())) WITH CHECK (tenant_id = (SELECT current_tenant()))', t || '_api', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_worker USING (true) WITH CHECK (true)', t || '_worker', t);
    END LOOP;
END
$$;
-- +goose StatementEnd

GRANT SELECT, INSERT, UPDATE, DELETE ON policy_rules, session_modes, preferences TO countersign_api;
GRANT SELECT, INSERT, UPDATE ON grants TO countersign_api;
GRANT SELECT ON policy_rules, preferences TO countersign_worker;
GRANT SELECT, DELETE ON session_modes TO countersign_worker;
GRANT SELECT, UPDATE ON grants TO countersign_worker;
