-- +goose Up

-- Tenants, and who acts for them: operators (people), identity providers, API
-- tokens, and employees (the identities of agents).

CREATE TABLE tenants (
    tenant_id           uuid        NOT NULL CONSTRAINT tenants_pkey PRIMARY KEY,
    name                text        NOT NULL CONSTRAINT tenants_name_key UNIQUE,
    config_version      bigint      NOT NULL DEFAULT 1,
    created_at          timestamptz NOT NULL DEFAULT now(),
    timezone            text        NOT NULL DEFAULT 'UTC',
    phone_region        text        NOT NULL DEFAULT '',
    plus_addressing     boolean     NOT NULL DEFAULT false,
    session_pending_max integer     NOT NULL DEFAULT 10
        CONSTRAINT tenants_session_pending_max_check CHECK (session_pending_max BETWEEN 0 AND 1000000),
    session_minute_max  integer     NOT NULL DEFAULT 60
        CONSTRAINT tenants_session_minute_max_check CHECK (session_minute_max BETWEEN 0 AND 1000000),
    danger_mode         text        NOT NULL DEFAULT 'deny'
        CONSTRAINT tenants_danger_mode_check CHECK (danger_mode IN ('require_approval', 'deny')),
    allowed_audiences   text[]      NOT NULL DEFAULT '{}',
    CONSTRAINT tenants_name_check CHECK (name ~ '^[a-z0-9][a-z0-9-]{0,62}$')
);
COMMENT ON COLUMN tenants.config_version IS
    'Incremented by triggers on every change of sources, tools, policy or limits. A decision stores the version it was made under; a worker that sees another version decides again.';
COMMENT ON COLUMN tenants.allowed_audiences IS
    'Issuers and audiences, each pair with a space between, that the deployment lets the tenant use although the audience does not contain the tenant''s id. Only a connection to the database changes it.';
COMMENT ON COLUMN tenants.timezone IS 'IANA name. Calendar limits of buckets without their own time zone reset at midnight in this zone.';
COMMENT ON COLUMN tenants.phone_region IS 'Two-letter code of the country whose phone numbers may be written without a country code; empty for none.';
COMMENT ON COLUMN tenants.plus_addressing IS 'Whether a+anything@b is the same recipient as a@b.';
COMMENT ON COLUMN tenants.danger_mode IS 'Mode of the tools whose risk is danger, where no mode is set for them.';
COMMENT ON COLUMN tenants.session_pending_max IS 'Maximum number of actions of one session that wait for approval at the same time; 0 means no limit.';
COMMENT ON COLUMN tenants.session_minute_max IS 'Maximum number of actions that one session may propose per minute, counted from the first proposal of that minute; 0 means no limit.';

-- bump_config_version increments tenants.config_version for the tenants of all
-- changed rows. It is a statement trigger with a transition table named
-- "changed". A trigger does this so that no code path can forget it.
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

-- bump_config_version_row does the same for one row. It serves tables that are
-- also updated for other reasons: the trigger's WHEN clause names the columns
-- that affect a decision or a call.
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

-- stamp_policy_version sets version to the config_version that results from
-- this change. A rule that is deleted and created again therefore gets a new
-- version. Each step of a decision trace records the version of its rule.
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

-- tenant_settings_changed increments config_version when the tenant's own
-- settings change.
-- +goose StatementBegin
CREATE FUNCTION tenant_settings_changed() RETURNS trigger
    LANGUAGE plpgsql SET search_path = public, pg_temp
AS $$
BEGIN
    NEW.config_version := NEW.config_version + 1;
    RETURN NEW;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER tenants_settings BEFORE UPDATE ON tenants FOR EACH ROW
    WHEN ((OLD.timezone, OLD.phone_region, OLD.plus_addressing, OLD.danger_mode) IS DISTINCT FROM (NEW.timezone, NEW.phone_region, NEW.plus_addressing, NEW.danger_mode))
    EXECUTE FUNCTION tenant_settings_changed();
CREATE TRIGGER tenants_session_limits BEFORE UPDATE ON tenants FOR EACH ROW
    WHEN ((OLD.session_pending_max, OLD.session_minute_max) IS DISTINCT FROM (NEW.session_pending_max, NEW.session_minute_max))
    EXECUTE FUNCTION tenant_settings_changed();

-- Operators are people, as API tokens, Slack and OpenID Connect issuers
-- identify them.
CREATE TABLE operators (
    tenant_id    uuid        NOT NULL CONSTRAINT operators_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    operator_id  uuid        NOT NULL,
    name         text        NOT NULL,
    email        text,
    issuer       text,
    subject      text,
    role         text        CONSTRAINT operators_role_check CHECK (role IN ('owner', 'admin', 'operator', 'viewer')),
    role_set     text        CONSTRAINT operators_role_set_check CHECK (role_set IN ('owner', 'admin', 'operator', 'viewer')),
    slack_team   text,
    slack_user   text,
    created_at   timestamptz NOT NULL DEFAULT now(),
    disabled_at  timestamptz,
    last_seen_at timestamptz,
    CONSTRAINT operators_pkey PRIMARY KEY (tenant_id, operator_id),
    CONSTRAINT operators_operator_id_key UNIQUE (operator_id),
    CONSTRAINT operators_login_check CHECK ((issuer IS NULL) = (subject IS NULL)),
    CONSTRAINT operators_slack_check CHECK ((slack_team IS NULL) = (slack_user IS NULL))
);
CREATE UNIQUE INDEX operators_login_key ON operators (tenant_id, issuer, subject) WHERE issuer IS NOT NULL;
CREATE UNIQUE INDEX operators_slack_key ON operators (tenant_id, slack_team, slack_user) WHERE slack_team IS NOT NULL;
COMMENT ON TABLE operators IS 'Operators are disabled, never deleted, because the audit record refers to them.';
COMMENT ON COLUMN operators.subject IS 'Subject identifier at the issuer. An e-mail address never identifies an operator, because issuers may reassign addresses.';
COMMENT ON COLUMN operators.role IS 'Role derived at the last login from the issuer''s claims or the provider''s default role; NULL if neither gives one.';
COMMENT ON COLUMN operators.role_set IS 'Role set by an administrator. It takes precedence over role.';

CREATE TABLE identity_providers (
    tenant_id       uuid        NOT NULL CONSTRAINT identity_providers_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    provider_id     text        NOT NULL,
    issuer          text        NOT NULL,
    audience        text        NOT NULL,
    clients         text[]      NOT NULL DEFAULT '{}',
    role_claim      text,
    roles           jsonb       NOT NULL DEFAULT '{}',
    default_role    text        CONSTRAINT identity_providers_default_role_check CHECK (default_role IN ('operator', 'viewer')),
    allowed_domains text[]      NOT NULL DEFAULT '{}',
    created_at      timestamptz NOT NULL DEFAULT now(),
    label             text      NOT NULL DEFAULT '',
    web_client_id     text,
    web_client_secret bytea,
    CONSTRAINT identity_providers_web_client_check CHECK (web_client_secret IS NULL OR web_client_id IS NOT NULL),
    CONSTRAINT identity_providers_pkey PRIMARY KEY (tenant_id, provider_id),
    CONSTRAINT identity_providers_provider_id_check CHECK (provider_id ~ '^[a-z0-9][a-z0-9_.-]{0,99}$'),
    CONSTRAINT identity_providers_audience_key UNIQUE (issuer, audience)
);
COMMENT ON TABLE identity_providers IS 'OpenID Connect issuers whose signed tokens are accepted. Issuer and audience together identify the tenant of a token.';
COMMENT ON COLUMN identity_providers.web_client_id IS 'Client as which the API logs people in in their browsers; NULL if it does not.';
COMMENT ON COLUMN identity_providers.web_client_secret IS 'Encrypted with COUNTERSIGN_SECRET_KEY for this provider of this tenant; NULL for a public client.';
COMMENT ON COLUMN identity_providers.clients IS 'Client ids, besides the audience itself, to which a token may have been issued.';

-- An owner is an administrator who may also create owners and administrators.
-- A viewer may only read.
CREATE TABLE api_tokens (
    token_id       uuid        NOT NULL CONSTRAINT api_tokens_pkey PRIMARY KEY,
    tenant_id      uuid        NOT NULL CONSTRAINT api_tokens_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    name           text        NOT NULL,
    role           text        NOT NULL CONSTRAINT api_tokens_role_check CHECK (role IN ('owner', 'admin', 'operator', 'viewer', 'agent')),
    token_hash     bytea       NOT NULL CONSTRAINT api_tokens_token_hash_key UNIQUE,
    employee_id    uuid,
    session_id     text,
    created_at     timestamptz NOT NULL DEFAULT now(),
    expires_at     timestamptz,
    revoked_at     timestamptz,
    operator_id    uuid,
    scopes         text[]      CONSTRAINT api_tokens_scopes_check CHECK (cardinality(scopes) > 0),
    tools          text[]      CONSTRAINT api_tokens_tools_check CHECK (cardinality(tools) > 0),
    last_used_at   timestamptz,
    rotated_at     timestamptz,
    previous_hash  bytea,
    previous_until timestamptz,
    issued_by      text,
    maker          uuid,
    automations    text[]      CONSTRAINT api_tokens_automations_check CHECK (cardinality(automations) > 0),
    employees      text[]      CONSTRAINT api_tokens_employees_check CHECK (cardinality(employees) > 0),
    sessions       text[]      CONSTRAINT api_tokens_sessions_check CHECK (cardinality(sessions) > 0),
    CONSTRAINT api_tokens_operator_id_fkey FOREIGN KEY (tenant_id, operator_id) REFERENCES operators (tenant_id, operator_id),
    CONSTRAINT api_tokens_previous_check CHECK ((previous_hash IS NULL) = (previous_until IS NULL))
);
CREATE UNIQUE INDEX api_tokens_previous_hash_key ON api_tokens (previous_hash) WHERE previous_hash IS NOT NULL;
CREATE INDEX api_tokens_tenant_idx ON api_tokens (tenant_id, token_id);
COMMENT ON COLUMN api_tokens.token_hash IS 'SHA-256 of the token. A token has 256 random bits, so a slow hash does not make it safer.';
COMMENT ON COLUMN api_tokens.operator_id IS 'Operator to whom the token belongs. The token is refused while the operator is disabled, and never has more rights than the operator.';
COMMENT ON COLUMN api_tokens.scopes IS 'Scopes to which the token is restricted; NULL means all scopes of its role.';
COMMENT ON COLUMN api_tokens.tools IS 'Patterns of the tools to which the token is restricted; NULL means all tools.';
COMMENT ON COLUMN api_tokens.maker IS 'Person who made the token, and whom it stands for if it belongs to no operator; NULL for tokens of agents, and for those that were made on the database.';
COMMENT ON COLUMN api_tokens.automations IS 'Patterns of the automations that proposals may name; NULL means none, and all for whoever may loosen policy.';
COMMENT ON COLUMN api_tokens.employees IS 'Employees that proposals may name, beside employee_id: ids, or * for all; NULL as for automations.';
COMMENT ON COLUMN api_tokens.sessions IS 'Patterns of the sessions that proposals may name, of a token without session_id; NULL as for automations.';
COMMENT ON COLUMN api_tokens.last_used_at IS 'Accurate to about 30 seconds, because it is written in batches.';
COMMENT ON COLUMN api_tokens.previous_hash IS 'Hash of the token before the last rotation; accepted until previous_until.';

-- A browser session is one login of a person in a browser. It acts as the
-- operator who logged in, or as the API token that was shown, and ends with it.
CREATE TABLE web_sessions (
    tenant_id   uuid        NOT NULL CONSTRAINT web_sessions_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    session_id  uuid        NOT NULL,
    secret_hash bytea       NOT NULL CONSTRAINT web_sessions_secret_hash_key UNIQUE,
    via         text        NOT NULL CONSTRAINT web_sessions_via_check CHECK (via IN ('oidc', 'code', 'token')),
    person      uuid        NOT NULL,
    operator_id uuid,
    token_id    uuid,
    token_hash  bytea,
    created_at  timestamptz NOT NULL DEFAULT now(),
    used_at     timestamptz NOT NULL DEFAULT now(),
    idle_at     timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    address     text        NOT NULL DEFAULT '',
    program     text        NOT NULL DEFAULT '',
    CONSTRAINT web_sessions_pkey PRIMARY KEY (tenant_id, session_id),
    CONSTRAINT web_sessions_operator_id_fkey FOREIGN KEY (tenant_id, operator_id) REFERENCES operators (tenant_id, operator_id),
    CONSTRAINT web_sessions_credential_check
        CHECK ((operator_id IS NULL) <> (token_id IS NULL) AND (token_id IS NULL) = (token_hash IS NULL))
);
CREATE INDEX web_sessions_person_idx ON web_sessions (tenant_id, person, session_id);
CREATE INDEX web_sessions_expires_at_idx ON web_sessions (tenant_id, expires_at);
COMMENT ON COLUMN web_sessions.secret_hash IS 'SHA-256 of the value of the cookie, which has 256 random bits.';
COMMENT ON COLUMN web_sessions.person IS 'Person whom votes of the session count for.';
COMMENT ON COLUMN web_sessions.token_hash IS 'SHA-256 of the token that was shown. The session is valid only while this secret is, so that rotating a token ends it.';
COMMENT ON COLUMN web_sessions.idle_at IS 'When the session ends unless a person does something before.';

-- A login code opens one browser session, once, for whoever made the code.
CREATE TABLE login_codes (
    tenant_id   uuid        NOT NULL CONSTRAINT login_codes_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    code_hash   bytea       NOT NULL CONSTRAINT login_codes_pkey PRIMARY KEY,
    person      uuid        NOT NULL,
    operator_id uuid,
    token_hash  bytea,
    created_at  timestamptz NOT NULL DEFAULT now(),
    expires_at  timestamptz NOT NULL,
    CONSTRAINT login_codes_operator_id_fkey FOREIGN KEY (tenant_id, operator_id) REFERENCES operators (tenant_id, operator_id),
    CONSTRAINT login_codes_credential_check CHECK ((operator_id IS NULL) <> (token_hash IS NULL))
);
CREATE INDEX login_codes_person_idx ON login_codes (tenant_id, person, created_at);
COMMENT ON COLUMN login_codes.code_hash IS 'SHA-256 of the code, which has 256 random bits.';
COMMENT ON COLUMN login_codes.token_hash IS 'SHA-256 of the token with which the code was made.';

-- Counts the refused logins of a person, a token or a provider within an hour, so
-- that many of them do not fill the audit log.
CREATE TABLE refused_logins (
    tenant_id uuid        NOT NULL CONSTRAINT refused_logins_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    about     text        NOT NULL,
    since     timestamptz NOT NULL DEFAULT now(),
    logins    integer     NOT NULL DEFAULT 1,
    CONSTRAINT refused_logins_pkey PRIMARY KEY (tenant_id, about)
);
COMMENT ON COLUMN refused_logins.about IS 'Whose logins: "person", "token" or "provider" with its id.';
COMMENT ON COLUMN refused_logins.since IS 'When the hour began in which the logins are counted.';

-- authenticate returns the valid token with this hash, its restrictions and its
-- operator. It runs before the tenant is known, and is one of the few queries
-- across tenants that the API role can make. valid_until is when this secret
-- expires, if it does.
-- +goose StatementBegin
CREATE FUNCTION authenticate(hash bytea)
    RETURNS TABLE (token_id uuid, tenant_id uuid, name text, role text, employee_id uuid, session_id text,
        operator_id uuid, operator_role text, scopes text[], tools text[], automations text[], employees text[], sessions text[], maker uuid,
        valid_until timestamptz)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT t.token_id, t.tenant_id, t.name, t.role, t.employee_id, t.session_id,
        t.operator_id, coalesce(o.role_set, o.role), t.scopes, t.tools, t.automations, t.employees, t.sessions, t.maker,
        least(t.expires_at, CASE WHEN t.token_hash = hash THEN NULL ELSE t.previous_until END)
    FROM api_tokens t
    LEFT JOIN operators o ON o.tenant_id = t.tenant_id AND o.operator_id = t.operator_id
    WHERE (t.token_hash = hash OR t.previous_hash = hash AND t.previous_until > now())
        AND t.revoked_at IS NULL
        AND (t.expires_at IS NULL OR t.expires_at > now())
        AND (t.operator_id IS NULL OR o.disabled_at IS NULL AND coalesce(o.role_set, o.role) IS NOT NULL)
$$;
-- +goose StatementEnd

-- authenticate_session returns the browser session of a secret, and the operator
-- or the hash of the token that it acts as. A session of an operator is valid only
-- while the tenant trusts the operator's issuer. It runs before the tenant is known.
-- Whether the token is still valid is authenticate's to say.
-- +goose StatementBegin
CREATE FUNCTION authenticate_session(hash bytea)
    RETURNS TABLE (tenant_id uuid, session_id uuid, idle_at timestamptz, expires_at timestamptz, token_hash bytea,
        operator_id uuid, operator_name text, operator_role text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT s.tenant_id, s.session_id, s.idle_at, s.expires_at, s.token_hash, s.operator_id, o.name, coalesce(o.role_set, o.role)
    FROM web_sessions s
    LEFT JOIN operators o ON o.tenant_id = s.tenant_id AND o.operator_id = s.operator_id
    WHERE s.secret_hash = hash AND s.idle_at > now() AND s.expires_at > now()
        AND (s.operator_id IS NULL OR o.disabled_at IS NULL AND coalesce(o.role_set, o.role) IS NOT NULL
            AND EXISTS (SELECT FROM identity_providers p WHERE p.tenant_id = s.tenant_id AND p.issuer = o.issuer))
$$;
-- +goose StatementEnd

-- end_web_session deletes the browser session of a secret, and returns it.
-- +goose StatementBegin
CREATE FUNCTION end_web_session(hash bytea) RETURNS TABLE (tenant_id uuid, session_id uuid)
    LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    DELETE FROM web_sessions s WHERE s.secret_hash = hash RETURNING s.tenant_id, s.session_id
$$;
-- +goose StatementEnd

-- redeem_login_code deletes a login code, and returns whom it is for, and whether
-- it is good for a session. Of two that redeem a code at once, one gets an answer.
-- +goose StatementBegin
CREATE FUNCTION redeem_login_code(hash bytea)
    RETURNS TABLE (tenant_id uuid, token_hash bytea, operator_id uuid, operator_name text, operator_role text, valid boolean)
    LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH redeemed AS (
        DELETE FROM login_codes c WHERE c.code_hash = hash
        RETURNING c.tenant_id, c.token_hash, c.operator_id, c.expires_at
    )
    SELECT r.tenant_id, r.token_hash, r.operator_id, o.name, coalesce(o.role_set, o.role),
        r.expires_at > now()
        AND (r.operator_id IS NULL OR o.disabled_at IS NULL AND coalesce(o.role_set, o.role) IS NOT NULL
            AND EXISTS (SELECT FROM identity_providers p WHERE p.tenant_id = r.tenant_id AND p.issuer = o.issuer))
    FROM redeemed r
    LEFT JOIN operators o ON o.tenant_id = r.tenant_id AND o.operator_id = r.operator_id
$$;
-- +goose StatementEnd

-- token_of returns the token of a secret, also one that is revoked or has expired,
-- so that a refused login with it is recorded where it belongs.
-- +goose StatementBegin
CREATE FUNCTION token_of(hash bytea) RETURNS TABLE (tenant_id uuid, token_id uuid)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT t.tenant_id, t.token_id FROM api_tokens t WHERE t.token_hash = hash OR t.previous_hash = hash
$$;
-- +goose StatementEnd

-- login_tenant returns the tenant of a name; without a name the only tenant, and
-- none if there are several.
-- +goose StatementBegin
CREATE FUNCTION login_tenant(wanted text) RETURNS TABLE (tenant_id uuid, name text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT t.tenant_id, t.name FROM tenants t
    WHERE CASE WHEN wanted = '' THEN (SELECT count(1) FROM (SELECT FROM tenants LIMIT 2) AS two) = 1 ELSE t.name = wanted END
$$;
-- +goose StatementEnd

-- providers_of returns the identity providers for an issuer and the audiences
-- of a token. It runs before the tenant is known. Two rows mean that the token
-- is ambiguous; the caller then rejects it.
-- +goose StatementBegin
CREATE FUNCTION providers_of(wanted_issuer text, audiences text[])
    RETURNS TABLE (tenant_id uuid, provider_id text, issuer text, audience text, clients text[], role_claim text, roles jsonb,
        default_role text, allowed_domains text[])
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT p.tenant_id, p.provider_id, p.issuer, p.audience, p.clients, p.role_claim, p.roles, p.default_role, p.allowed_domains
    FROM identity_providers p
    WHERE p.issuer = wanted_issuer AND p.audience = ANY (audiences)
    ORDER BY p.audience
    LIMIT 2
$$;
-- +goose StatementEnd

-- record_uses records when tokens were last used and operators last seen. The
-- ids may be of tokens and of operators. Rows that another transaction has
-- locked are skipped; their next use records them.
-- +goose StatementBegin
CREATE FUNCTION record_uses(ids uuid[], ats timestamptz[]) RETURNS void
    LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH uses AS (SELECT u.id, max(u.at) AS at FROM unnest(ids, ats) AS u (id, at) GROUP BY u.id),
    unlocked_tokens AS (
        SELECT t.token_id, u.at FROM api_tokens t JOIN uses u ON u.id = t.token_id
        WHERE t.last_used_at IS NULL OR t.last_used_at < u.at
        FOR NO KEY UPDATE OF t SKIP LOCKED
    )
    UPDATE api_tokens t SET last_used_at = f.at FROM unlocked_tokens f WHERE t.token_id = f.token_id;

    WITH uses AS (SELECT u.id, max(u.at) AS at FROM unnest(ids, ats) AS u (id, at) GROUP BY u.id),
    unlocked_operators AS (
        SELECT o.tenant_id, o.operator_id, max(u.at) AS at FROM (
            SELECT p.tenant_id, p.operator_id FROM operators p
            WHERE p.operator_id = ANY (ids)
            FOR NO KEY UPDATE OF p SKIP LOCKED
        ) o JOIN uses u ON u.id = o.operator_id
        GROUP BY o.tenant_id, o.operator_id
    )
    UPDATE operators o SET last_seen_at = greatest(o.last_seen_at, f.at) FROM unlocked_operators f
    WHERE o.tenant_id = f.tenant_id AND o.operator_id = f.operator_id;
$$;
-- +goose StatementEnd

-- token_revoked reports whether a token was revoked or its operator disabled.
-- The token may also be an operator's id. Workers, who may not read tokens,
-- call it before they propose the steps of a workflow.
-- +goose StatementBegin
CREATE FUNCTION token_revoked(tenant uuid, token uuid) RETURNS boolean
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    RETURN EXISTS (
        SELECT 1
        FROM api_tokens t
        WHERE t.tenant_id = tenant AND t.token_id = token
            AND (t.revoked_at IS NOT NULL OR EXISTS (
                SELECT 1 FROM operators o WHERE o.tenant_id = tenant AND o.operator_id = t.operator_id AND o.disabled_at IS NOT NULL)))
        OR EXISTS (SELECT 1 FROM operators o WHERE o.tenant_id = tenant AND o.operator_id = token AND o.disabled_at IS NOT NULL);
END
$$;
-- +goose StatementEnd

-- agent_sessions returns those of some sessions that are an agent's: that a
-- token of the role agent is bound to, valid or not. Others may not propose in
-- them. Workers, who may not read tokens, call it for the steps of workflows.
-- +goose StatementBegin
CREATE FUNCTION agent_sessions(tenant uuid, named text[]) RETURNS SETOF text
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT DISTINCT t.session_id
    FROM api_tokens t
    WHERE t.tenant_id = tenant AND t.role = 'agent' AND t.session_id = ANY (named)
$$;
-- +goose StatementEnd

-- Employees are the identities of agents, with their trust and scopes.
CREATE TABLE employees (
    tenant_id   uuid        NOT NULL CONSTRAINT employees_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    employee_id uuid        NOT NULL,
    name        text        NOT NULL DEFAULT '',
    trust       text        NOT NULL CONSTRAINT employees_trust_check CHECK (trust IN ('none', 'low', 'medium', 'high')),
    scopes      text[]      NOT NULL DEFAULT '{}',
    updated_at  timestamptz NOT NULL DEFAULT now(),
    updated_by  text        NOT NULL DEFAULT '',
    CONSTRAINT employees_pkey PRIMARY KEY (tenant_id, employee_id)
);
COMMENT ON COLUMN employees.employee_id IS 'The zero UUID is the default for employees without a row and for actions without an employee.';
COMMENT ON COLUMN employees.trust IS 'Highest risk that may run without approval.';
CREATE TRIGGER employees_bump_insert AFTER INSERT ON employees REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER employees_bump_update AFTER UPDATE ON employees REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER employees_bump_delete AFTER DELETE ON employees REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();

-- Every table gets row-level security with the same two policies: the API sees
-- the current tenant, workers see all tenants. FORCE makes the policies apply
-- to the owner too. The sub-select makes PostgreSQL call current_tenant() once
-- per statement instead of once per row.
-- +goose StatementBegin
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['tenants', 'operators', 'identity_providers', 'api_tokens', 'web_sessions', 'login_codes', 'refused_logins', 'employees'] LOOP
        EXECUTE format('ALTER TABLE %I OWNER TO countersign_owner', t);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_api USING (tenant_id = (SELECT current_tenant())) WITH CHECK (tenant_id = (SELECT current_tenant()))', t || '_api', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_worker USING (true) WITH CHECK (true)', t || '_worker', t);
    END LOOP;
END
$$;
-- +goose StatementEnd
-- The SECURITY DEFINER functions run as the owner. Because of FORCE, the owner
-- needs policies of its own.
CREATE POLICY tenants_owner_bump ON tenants TO countersign_owner USING (true) WITH CHECK (true);
CREATE POLICY operators_owner ON operators TO countersign_owner USING (true) WITH CHECK (true);
CREATE POLICY identity_providers_owner ON identity_providers FOR SELECT TO countersign_owner USING (true);
CREATE POLICY api_tokens_owner_authenticate ON api_tokens FOR SELECT TO countersign_owner USING (true);
CREATE POLICY api_tokens_owner_use ON api_tokens FOR UPDATE TO countersign_owner USING (true) WITH CHECK (true);

CREATE POLICY web_sessions_owner_read ON web_sessions FOR SELECT TO countersign_owner USING (true);
CREATE POLICY web_sessions_owner_end ON web_sessions FOR DELETE TO countersign_owner USING (true);
CREATE POLICY login_codes_owner_read ON login_codes FOR SELECT TO countersign_owner USING (true);
CREATE POLICY login_codes_owner_redeem ON login_codes FOR DELETE TO countersign_owner USING (true);

ALTER FUNCTION bump_config_version() OWNER TO countersign_owner;
ALTER FUNCTION bump_config_version_row() OWNER TO countersign_owner;
ALTER FUNCTION stamp_policy_version() OWNER TO countersign_owner;
ALTER FUNCTION tenant_settings_changed() OWNER TO countersign_owner;
ALTER FUNCTION authenticate(bytea) OWNER TO countersign_owner;
ALTER FUNCTION authenticate_session(bytea) OWNER TO countersign_owner;
ALTER FUNCTION end_web_session(bytea) OWNER TO countersign_owner;
ALTER FUNCTION redeem_login_code(bytea) OWNER TO countersign_owner;
ALTER FUNCTION login_tenant(text) OWNER TO countersign_owner;
ALTER FUNCTION token_of(bytea) OWNER TO countersign_owner;
ALTER FUNCTION providers_of(text, text[]) OWNER TO countersign_owner;
ALTER FUNCTION record_uses(uuid[], timestamptz[]) OWNER TO countersign_owner;
ALTER FUNCTION token_revoked(uuid, uuid) OWNER TO countersign_owner;
ALTER FUNCTION agent_sessions(uuid, text[]) OWNER TO countersign_owner;

REVOKE EXECUTE ON FUNCTION bump_config_version(), bump_config_version_row(), stamp_policy_version(), tenant_settings_changed() FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION authenticate_session(bytea), end_web_session(bytea), redeem_login_code(bytea), login_tenant(text), token_of(bytea) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION authenticate_session(bytea), end_web_session(bytea), redeem_login_code(bytea), login_tenant(text), token_of(bytea) TO countersign_api;
REVOKE EXECUTE ON FUNCTION authenticate(bytea), providers_of(text, text[]), record_uses(uuid[], timestamptz[]), token_revoked(uuid, uuid),
    agent_sessions(uuid, text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION authenticate(bytea), providers_of(text, text[]), record_uses(uuid[], timestamptz[]) TO countersign_api;
GRANT EXECUTE ON FUNCTION token_revoked(uuid, uuid) TO countersign_worker;
GRANT EXECUTE ON FUNCTION agent_sessions(uuid, text[]) TO countersign_api, countersign_worker;

GRANT SELECT ON tenants TO countersign_api;
GRANT UPDATE (timezone, phone_region, plus_addressing, session_pending_max, session_minute_max, danger_mode) ON tenants TO countersign_api;
GRANT SELECT, INSERT, UPDATE ON operators, api_tokens TO countersign_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON identity_providers, employees, web_sessions TO countersign_api;
GRANT SELECT, INSERT, DELETE ON login_codes TO countersign_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON refused_logins TO countersign_api;

GRANT SELECT ON tenants, employees TO countersign_worker;
