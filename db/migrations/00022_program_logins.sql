-- +goose Up

-- Logins of programs by OAuth 2.1. A login is an agent's token that a person
-- consented to. Its secret is short-lived, and the program renews it with a refresh
-- token.

ALTER TABLE api_tokens ADD COLUMN secret_until timestamptz;
COMMENT ON COLUMN api_tokens.secret_until IS 'When the current secret expires; NULL means with the token. Set for logins of programs, which renew it.';

CREATE TABLE program_logins (
    tenant_id       uuid        NOT NULL CONSTRAINT program_logins_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    token_id        uuid        NOT NULL CONSTRAINT program_logins_pkey PRIMARY KEY
        CONSTRAINT program_logins_token_id_fkey REFERENCES api_tokens (token_id) ON DELETE CASCADE,
    client_id       text        NOT NULL,
    program         text        NOT NULL,
    redirect_uri    text        NOT NULL,
    resource        text        NOT NULL,
    code_hash       bytea       NOT NULL CONSTRAINT program_logins_code_hash_key UNIQUE,
    code_challenge  text        NOT NULL,
    code_expires_at timestamptz NOT NULL,
    code_used_at    timestamptz,
    created_at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX program_logins_client_id_idx ON program_logins (md5(client_id));
CREATE INDEX program_logins_unused_idx ON program_logins (tenant_id, code_expires_at) WHERE code_used_at IS NULL;
COMMENT ON TABLE program_logins IS 'Consents of people to programs. Each belongs to an agent''s token.';
COMMENT ON COLUMN program_logins.client_id IS 'As the program sends it: the https address of its metadata document, or an encrypted registration.';
COMMENT ON COLUMN program_logins.resource IS 'Address at which alone the token is accepted (RFC 8707).';
COMMENT ON COLUMN program_logins.code_hash IS 'SHA-256 of the authorization code, which has 256 random bits. A code that is used twice revokes the token.';
COMMENT ON COLUMN program_logins.code_challenge IS 'SHA-256 of the code verifier in base64url (RFC 7636, S256).';

CREATE TABLE refresh_tokens (
    tenant_id    uuid        NOT NULL CONSTRAINT refresh_tokens_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    token_id     uuid        NOT NULL CONSTRAINT refresh_tokens_token_id_fkey REFERENCES program_logins (token_id) ON DELETE CASCADE,
    refresh_hash bytea       NOT NULL CONSTRAINT refresh_tokens_pkey PRIMARY KEY,
    used_at      timestamptz,
    salt         bytea,
    CONSTRAINT refresh_tokens_used_check CHECK ((used_at IS NULL) = (salt IS NULL))
);
CREATE INDEX refresh_tokens_token_id_idx ON refresh_tokens (token_id);
COMMENT ON TABLE refresh_tokens IS 'Refresh tokens of a login. Used ones are kept, so that a second use revokes the login.';
COMMENT ON COLUMN refresh_tokens.salt IS 'With the refresh token itself it gives the secrets that replaced it, so that parallel uses get the same ones.';

-- +goose StatementBegin
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['program_logins', 'refresh_tokens'] LOOP
        EXECUTE format('ALTER TABLE %I OWNER TO countersign_owner', t);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_api USING (tenant_id = (SELECT current_tenant())) WITH CHECK (tenant_id = (SELECT current_tenant()))', t || '_api', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_worker USING (true) WITH CHECK (true)', t || '_worker', t);
        EXECUTE format('CREATE POLICY %I ON %I FOR SELECT TO countersign_owner USING (true)', t || '_owner', t);
    END LOOP;
END
$$;
-- +goose StatementEnd
GRANT SELECT, INSERT, UPDATE, DELETE ON program_logins TO countersign_api;
GRANT SELECT, INSERT, UPDATE ON refresh_tokens TO countersign_api;

-- authenticate also ends a secret that is short-lived.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION authenticate(hash bytea)
    RETURNS TABLE (token_id uuid, tenant_id uuid, name text, role text, employee_id uuid, session_id text,
        operator_id uuid, operator_role text, scopes text[], tools text[], automations text[], employees text[], sessions text[], maker uuid,
        valid_until timestamptz)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, countersign_data, pg_temp
AS $$
    SELECT t.token_id, t.tenant_id, t.name, t.role, t.employee_id, t.session_id,
        t.operator_id, coalesce(o.role_set, o.role), t.scopes, t.tools, t.automations, t.employees, t.sessions, t.maker,
        least(t.expires_at, CASE WHEN t.token_hash = hash THEN t.secret_until ELSE t.previous_until END)
    FROM api_tokens t
    LEFT JOIN operators o ON o.tenant_id = t.tenant_id AND o.operator_id = t.operator_id
    WHERE (t.token_hash = hash AND (t.secret_until IS NULL OR t.secret_until > now()) OR t.previous_hash = hash AND t.previous_until > now())
        AND t.revoked_at IS NULL
        AND (t.expires_at IS NULL OR t.expires_at > now())
        AND (t.operator_id IS NULL OR o.disabled_at IS NULL AND coalesce(o.role_set, o.role) IS NOT NULL)
$$;
-- +goose StatementEnd

-- program_login_of returns the token of an authorization code or a refresh token,
-- valid or not. It runs before the tenant is known.
-- +goose StatementBegin
CREATE FUNCTION program_login_of(hash bytea) RETURNS TABLE (tenant_id uuid, token_id uuid)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, countersign_data, pg_temp
AS $$
    SELECT p.tenant_id, p.token_id FROM program_logins p WHERE p.code_hash = hash
    UNION ALL
    SELECT r.tenant_id, r.token_id FROM refresh_tokens r WHERE r.refresh_hash = hash
$$;
-- +goose StatementEnd

-- program_is_used reports whether a tenant has a login of a program that holds.
-- +goose StatementBegin
CREATE FUNCTION program_is_used(client text) RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, countersign_data, pg_temp
AS $$
    SELECT EXISTS (
        SELECT FROM program_logins p
        JOIN api_tokens t ON t.tenant_id = p.tenant_id AND t.token_id = p.token_id
        WHERE md5(p.client_id) = md5(client) AND p.client_id = client AND p.code_used_at IS NOT NULL AND t.revoked_at IS NULL
    )
$$;
-- +goose StatementEnd

-- token_resource returns the address at which alone a token is accepted; NULL for
-- one that is no login of a program.
-- +goose StatementBegin
CREATE FUNCTION token_resource(tenant uuid, token uuid) RETURNS text
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, countersign_data, pg_temp
AS $$ SELECT p.resource FROM program_logins p WHERE p.tenant_id = tenant AND p.token_id = token $$;
-- +goose StatementEnd

ALTER FUNCTION program_login_of(bytea) OWNER TO countersign_owner;
ALTER FUNCTION program_is_used(text) OWNER TO countersign_owner;
ALTER FUNCTION token_resource(uuid, uuid) OWNER TO countersign_owner;
REVOKE EXECUTE ON FUNCTION program_login_of(bytea), program_is_used(text), token_resource(uuid, uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION program_login_of(bytea), program_is_used(text), token_resource(uuid, uuid) TO countersign_api;
