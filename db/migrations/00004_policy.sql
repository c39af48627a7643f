-- +goose Up

-- The rules of policy. Every change increments the tenant's config_version.

-- A mode per automation and key. automation_id is empty for the default of the
-- organisation. mode has no CHECK on purpose: a value that this version of the
-- software does not know must be storable; it then denies with
-- unknown_mode:<value>.
CREATE TABLE policy_modes (
    tenant_id     uuid        NOT NULL CONSTRAINT policy_modes_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    automation_id text        NOT NULL DEFAULT '',
    key           text        NOT NULL,
    mode          text        NOT NULL,
    updated_at    timestamptz NOT NULL DEFAULT now(),
    updated_by    text        NOT NULL DEFAULT '',
    version       bigint      NOT NULL DEFAULT 0,
    CONSTRAINT policy_modes_pkey PRIMARY KEY (tenant_id, automation_id, key)
);
COMMENT ON COLUMN policy_modes.version IS 'The tenant''s config_version as of the last change of the row.';
CREATE TRIGGER policy_modes_stamp BEFORE INSERT OR UPDATE ON policy_modes FOR EACH ROW EXECUTE FUNCTION stamp_policy_version();
CREATE TRIGGER policy_modes_bump_insert AFTER INSERT ON policy_modes REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER policy_modes_bump_update AFTER UPDATE ON policy_modes REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER policy_modes_bump_delete AFTER DELETE ON policy_modes REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();

-- Rules about arguments. mode, key and expression have no CHECK for the same
-- reason as policy_modes.mode: what this version of the software cannot read
-- must be storable, and denies.
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
COMMENT ON COLUMN policy_rules.expression IS 'CEL expression over the arguments and the proposal. mode applies if it is true or its evaluation fails.';
COMMENT ON COLUMN policy_rules.mode IS 'require_approval or deny: a rule about arguments can only restrict.';
CREATE TRIGGER policy_rules_stamp BEFORE INSERT OR UPDATE ON policy_rules FOR EACH ROW EXECUTE FUNCTION stamp_policy_version();
CREATE TRIGGER policy_rules_bump_insert AFTER INSERT ON policy_rules REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER policy_rules_bump_update AFTER UPDATE ON policy_rules REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER policy_rules_bump_delete AFTER DELETE ON policy_rules REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();

-- Modes for one session, until they expire.
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
CREATE TRIGGER session_modes_stamp BEFORE INSERT OR UPDATE ON session_modes FOR EACH ROW EXECUTE FUNCTION stamp_policy_version();
CREATE TRIGGER session_modes_bump_insert AFTER INSERT ON session_modes REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER session_modes_bump_update AFTER UPDATE ON session_modes REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER session_modes_bump_delete AFTER DELETE ON session_modes REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();

-- What users disabled. There are no rows for what is enabled.
CREATE TABLE preferences (
    tenant_id   uuid        NOT NULL CONSTRAINT preferences_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    employee_id uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    key         text        NOT NULL,
    enabled     boolean     NOT NULL DEFAULT false CONSTRAINT preferences_enabled_check CHECK (NOT enabled),
    version     bigint      NOT NULL DEFAULT 0,
    updated_at  timestamptz NOT NULL DEFAULT now(),
    updated_by  text        NOT NULL DEFAULT '',
    set_by      uuid,
    CONSTRAINT preferences_pkey PRIMARY KEY (tenant_id, employee_id, key)
);
COMMENT ON COLUMN preferences.employee_id IS 'The zero UUID stands for all employees of the tenant.';
COMMENT ON COLUMN preferences.set_by IS 'Person who switched the tools off first, and may switch them on again; NULL if a document did.';
CREATE TRIGGER preferences_stamp BEFORE INSERT OR UPDATE ON preferences FOR EACH ROW EXECUTE FUNCTION stamp_policy_version();
CREATE TRIGGER preferences_bump_insert AFTER INSERT ON preferences REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER preferences_bump_update AFTER UPDATE ON preferences REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER preferences_bump_delete AFTER DELETE ON preferences REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();

-- A grant is an approval given in advance ("always allow"). It turns
-- require_approval into allow, and never changes deny.
CREATE TABLE grants (
    tenant_id          uuid        NOT NULL CONSTRAINT grants_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    grant_id           uuid        NOT NULL,
    source_id          text        NOT NULL,
    tool_name          text        NOT NULL,
    tool_digest        bytea       NOT NULL,
    employee_id        uuid,
    session_id         text,
    automation_id      text,
    pins               jsonb       NOT NULL DEFAULT '{}' CONSTRAINT grants_pins_check CHECK (jsonb_typeof(pins) = 'object'),
    reason             text        NOT NULL DEFAULT '',
    from_action        uuid,
    created_at         timestamptz NOT NULL DEFAULT now(),
    created_by         text        NOT NULL DEFAULT '',
    person             uuid,
    expires_at         timestamptz NOT NULL,
    revoked_at         timestamptz,
    revoked_by         text,
    expiry_recorded_at timestamptz,
    version            bigint      NOT NULL DEFAULT 0,
    CONSTRAINT grants_pkey PRIMARY KEY (tenant_id, grant_id),
    CONSTRAINT grants_expires_at_check CHECK (expires_at > created_at AND expires_at <= created_at + interval '90 days')
);
CREATE INDEX grants_live ON grants (tenant_id, expires_at) WHERE revoked_at IS NULL AND expiry_recorded_at IS NULL;
COMMENT ON COLUMN grants.pins IS 'JSON Pointers into the arguments, each with the value that the argument must have.';
COMMENT ON COLUMN grants.tool_digest IS 'Digest of the tool definition that the operator saw. The grant does not apply to another definition.';
COMMENT ON COLUMN grants.from_action IS 'Action whose approval created the grant; NULL if it was created on its own.';
COMMENT ON COLUMN grants.person IS 'Person who created it: an operator id, or the token''s id if the token belongs to no operator. The grant does not apply to what this person proposes.';
COMMENT ON COLUMN grants.expiry_recorded_at IS 'When the background job recorded that the grant has expired, which incremented the tenant''s config_version.';
CREATE TRIGGER grants_stamp BEFORE INSERT OR UPDATE ON grants FOR EACH ROW EXECUTE FUNCTION stamp_policy_version();
CREATE TRIGGER grants_bump_insert AFTER INSERT ON grants REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER grants_bump_update AFTER UPDATE ON grants REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER grants_bump_delete AFTER DELETE ON grants REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();

-- Which actions need more than one approval, and how long they wait. Of the
-- rules that match an action, the highest approvals_needed applies; each
-- duration is that of the most specific rule that sets it.
CREATE TABLE reviews (
    tenant_id        uuid        NOT NULL CONSTRAINT reviews_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    key              text        NOT NULL,
    risk             text        NOT NULL DEFAULT 'low' CONSTRAINT reviews_risk_check CHECK (risk IN ('low', 'medium', 'high')),
    approvals_needed integer     NOT NULL DEFAULT 1 CONSTRAINT reviews_approvals_needed_check CHECK (approvals_needed BETWEEN 1 AND 5),
    wait_seconds     integer     CONSTRAINT reviews_wait_seconds_check CHECK (wait_seconds BETWEEN 1 AND 2592000),
    warn_seconds     integer     CONSTRAINT reviews_warn_seconds_check CHECK (warn_seconds BETWEEN 0 AND 2592000),
    escalate_seconds integer     CONSTRAINT reviews_escalate_seconds_check CHECK (escalate_seconds BETWEEN 0 AND 2592000),
    edits            text        CONSTRAINT reviews_edits_check CHECK (edits = 'another'),
    updated_at       timestamptz NOT NULL DEFAULT now(),
    updated_by       text        NOT NULL DEFAULT '',
    CONSTRAINT reviews_pkey PRIMARY KEY (tenant_id, key, risk)
);
COMMENT ON COLUMN reviews.risk IS 'Lowest risk that the rule applies to; low means every action.';
COMMENT ON COLUMN reviews.wait_seconds IS 'How long an action waits for approval before it expires; NULL leaves it to other rules.';
COMMENT ON COLUMN reviews.warn_seconds IS 'How long before the expiry a warning is sent; 0 means never.';
COMMENT ON COLUMN reviews.escalate_seconds IS 'How long after the start of the wait it is escalated to more people; 0 means never.';
COMMENT ON COLUMN reviews.edits IS 'another: whoever edited the arguments does not approve them. NULL leaves it to other rules.';
CREATE TRIGGER reviews_bump_insert AFTER INSERT ON reviews REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER reviews_bump_update AFTER UPDATE ON reviews REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER reviews_bump_delete AFTER DELETE ON reviews REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();

-- Row-level security: the same two policies for every table.
-- +goose StatementBegin
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['policy_modes', 'policy_rules', 'session_modes', 'preferences', 'grants', 'reviews'] LOOP
        EXECUTE format('ALTER TABLE %I OWNER TO countersign_owner', t);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_api USING (tenant_id = (SELECT current_tenant())) WITH CHECK (tenant_id = (SELECT current_tenant()))', t || '_api', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_worker USING (true) WITH CHECK (true)', t || '_worker', t);
    END LOOP;
END
$$;
-- +goose StatementEnd

GRANT SELECT, INSERT, UPDATE, DELETE ON policy_modes, policy_rules, session_modes, preferences, reviews TO countersign_api;
GRANT SELECT, INSERT, UPDATE ON grants TO countersign_api;

GRANT SELECT ON policy_modes, policy_rules, preferences, reviews TO countersign_worker;
GRANT SELECT, DELETE ON session_modes TO countersign_worker;
GRANT SELECT, UPDATE ON grants TO countersign_worker;
