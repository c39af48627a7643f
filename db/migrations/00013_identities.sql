-- +goose Up

-- People, as tokens, Slack and issuers of OpenID Connect know them.
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
COMMENT ON TABLE operators IS 'Nobody is deleted, only disabled: the record names them.';
COMMENT ON COLUMN operators.subject IS 'Who the issuer says it is. An e-mail address is never what a person is known by: issuers give them away again.';
COMMENT ON COLUMN operators.role IS 'What the issuer''s claims, or the provider''s default, made of the person at the last login; NULL if nothing.';
COMMENT ON COLUMN operators.role_set IS 'What an administrator set, which goes before role.';

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
    CONSTRAINT identity_providers_pkey PRIMARY KEY (tenant_id, provider_id),
    CONSTRAINT identity_providers_provider_id_check CHECK (provider_id ~ '^[a-z0-9][a-z0-9_.-]{0,99}$'),
    CONSTRAINT identity_providers_audience_key UNIQUE (issuer, audience)
);
COMMENT ON TABLE identity_providers IS 'The issuers whose signed tokens are taken. Issuer and audience together say of which tenant a token is.';
COMMENT ON COLUMN identity_providers.clients IS 'Clients, beside the audience itself, to which a token may have been issued.';

ALTER TABLE api_tokens
    ADD COLUMN operator_id uuid,
    ADD COLUMN scopes text[],
    ADD COLUMN tools text[],
    ADD COLUMN last_used_at timestamptz,
    ADD COLUMN rotated_at timestamptz,
    ADD COLUMN previous_hash bytea,
    ADD COLUMN previous_until timestamptz,
    ADD COLUMN issued_by text,
    ADD CONSTRAINT api_tokens_operator_id_fkey FOREIGN KEY (tenant_id, operator_id) REFERENCES operators (tenant_id, operator_id),
    ADD CONSTRAINT api_tokens_scopes_check CHECK (cardinality(scopes) > 0),
    ADD CONSTRAINT api_tokens_tools_check CHECK (cardinality(tools) > 0),
    ADD CONSTRAINT api_tokens_previous_check CHECK ((previous_hash IS NULL) = (previous_until IS NULL));
CREATE UNIQUE INDEX api_tokens_previous_hash_key ON api_tokens (previous_hash) WHERE previous_hash IS NOT NULL;
CREATE INDEX api_tokens_tenant_idx ON api_tokens (tenant_id, token_id);
COMMENT ON COLUMN api_tokens.operator_id IS 'The person behind it. A token is refused while its person is disabled, and is never more than the person.';
COMMENT ON COLUMN api_tokens.scopes IS 'The rights that it is narrowed to; NULL is all that the role may.';
COMMENT ON COLUMN api_tokens.tools IS 'Patterns of the tools that it is narrowed to; NULL is all.';
COMMENT ON COLUMN api_tokens.last_used_at IS 'Within half a minute: written in batches.';
COMMENT ON COLUMN api_tokens.previous_hash IS 'The secret before the last rotation, which is valid until previous_until.';

-- As before, and with what narrows a token and who is behind it. valid_until
-- is when this secret ends, if it does.
DROP FUNCTION authenticate(bytea);
-- +goose StatementBegin
CREATE FUNCTION authenticate(hash bytea)
    RETURNS TABLE (token_id uuid, tenant_id uuid, name text, role text, employee_id uuid, session_id text,
        operator_id uuid, operator_role text, scopes text[], tools text[], valid_until timestamptz)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT t.token_id, t.tenant_id, t.name, t.role, t.employee_id, t.session_id,
        t.operator_id, coalesce(o.role_set, o.role), t.scopes, t.tools,
        least(t.expires_at, CASE WHEN t.token_hash = hash THEN NULL ELSE t.previous_until END)
    FROM api_tokens t
    LEFT JOIN operators o ON o.tenant_id = t.tenant_id AND o.operator_id = t.operator_id
    WHERE (t.token_hash = hash OR t.previous_hash = hash AND t.previous_until > now())
        AND t.revoked_at IS NULL
        AND (t.expires_at IS NULL OR t.expires_at > now())
        AND (t.operator_id IS NULL OR o.disabled_at IS NULL AND coalesce(o.role_set, o.role) IS NOT NULL)
$$;
-- +goose StatementEnd

-- Finds the provider before its tenant is known. More than one row means that
-- a token is for several, and so for none.
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

-- Takes note of when tokens were shown and people seen. What somebody else
-- changes at the moment is passed over: it is noted the next time.
-- +goose StatementBegin
CREATE FUNCTION note_uses(ids uuid[], ats timestamptz[]) RETURNS void
    LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH uses AS (SELECT u.id, max(u.at) AS at FROM unnest(ids, ats) AS u (id, at) GROUP BY u.id),
    free AS (
        SELECT t.token_id, u.at FROM api_tokens t JOIN uses u ON u.id = t.token_id
        WHERE t.last_used_at IS NULL OR t.last_used_at < u.at
        FOR NO KEY UPDATE OF t SKIP LOCKED
    )
    UPDATE api_tokens t SET last_used_at = f.at FROM free f WHERE t.token_id = f.token_id;

    WITH uses AS (SELECT u.id, max(u.at) AS at FROM unnest(ids, ats) AS u (id, at) GROUP BY u.id),
    free AS (
        SELECT o.tenant_id, o.operator_id, max(u.at) AS at FROM (
            SELECT p.tenant_id, p.operator_id FROM operators p
            WHERE p.operator_id = ANY (ids)
            FOR NO KEY UPDATE OF p SKIP LOCKED
        ) o JOIN uses u ON u.id = o.operator_id
        GROUP BY o.tenant_id, o.operator_id
    )
    UPDATE operators o SET last_seen_at = greatest(o.last_seen_at, f.at) FROM free f
    WHERE o.tenant_id = f.tenant_id AND o.operator_id = f.operator_id;
$$;
-- +goose StatementEnd

-- +goose StatementBegin
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['operators', 'identity_providers'] LOOP
        EXECUTE format('ALTER TABLE %I OWNER TO countersign_owner', t);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_api USING (tenant_id = (SELECT current_tenant())) WITH CHECK (tenant_id = (SELECT current_tenant()))', t || '_api', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_worker USING (true) WITH CHECK (true)', t || '_worker', t);
    END LOOP;
END
$$;
-- +goose StatementEnd
ALTER FUNCTION authenticate(bytea) OWNER TO countersign_owner;
ALTER FUNCTION providers_of(text, text[]) OWNER TO countersign_owner;
ALTER FUNCTION note_uses(uuid[], timestamptz[]) OWNER TO countersign_owner;

-- The functions above run as the owner, whom FORCE would otherwise blind.
CREATE POLICY api_tokens_owner_use ON api_tokens FOR UPDATE TO countersign_owner USING (true) WITH CHECK (true);
CREATE POLICY operators_owner ON operators TO countersign_owner USING (true) WITH CHECK (true);
CREATE POLICY identity_providers_owner ON identity_providers FOR SELECT TO countersign_owner USING (true);

REVOKE EXECUTE ON FUNCTION authenticate(bytea), providers_of(text, text[]), note_uses(uuid[], timestamptz[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION authenticate(bytea), providers_of(text, text[]), note_uses(uuid[], timestamptz[]) TO countersign_api;

GRANT SELECT, INSERT, UPDATE ON operators TO countersign_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON identity_providers TO countersign_api;
