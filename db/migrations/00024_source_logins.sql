-- +goose Up

-- Logins towards the authorization servers of sources (OAuth 2.1).

ALTER TABLE sources ADD COLUMN on_lost_login text NOT NULL DEFAULT 'wait' CONSTRAINT sources_on_lost_login_check CHECK (on_lost_login IN ('wait', 'fail'));
COMMENT ON COLUMN sources.on_lost_login IS 'What calls do while the login of the source is lost: wait for another login, or fail.';
DROP TRIGGER sources_bump_update ON sources;
CREATE TRIGGER sources_bump_update AFTER UPDATE ON sources FOR EACH ROW
    WHEN ((OLD.kind, OLD.config, OLD.secret, OLD.default_risk, OLD.enabled, OLD.drift_guard, OLD.quarantine, OLD.list_error IS NULL, OLD.accepted_address, OLD.generation, OLD.on_lost_login)
        IS DISTINCT FROM
            (NEW.kind, NEW.config, NEW.secret, NEW.default_risk, NEW.enabled, NEW.drift_guard, NEW.quarantine, NEW.list_error IS NULL, NEW.accepted_address, NEW.generation, NEW.on_lost_login))
    EXECUTE FUNCTION bump_config_version_row();

CREATE TABLE source_clients (
    tenant_id  uuid        NOT NULL CONSTRAINT source_clients_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    issuer     text        NOT NULL,
    secret     bytea       NOT NULL,
    configured boolean     NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT source_clients_pkey PRIMARY KEY (tenant_id, issuer)
);
COMMENT ON TABLE source_clients IS 'Countersign as a client of authorization servers: one for each issuer.';
COMMENT ON COLUMN source_clients.secret IS 'The client''s id and secret, encrypted with AES-256-GCM.';
COMMENT ON COLUMN source_clients.configured IS 'A person registered the client; otherwise Countersign did.';

CREATE TABLE source_login_states (
    tenant_id  uuid        NOT NULL,
    source_id  text        NOT NULL,
    state_hash bytea       NOT NULL CONSTRAINT source_login_states_pkey PRIMARY KEY,
    begun_by   uuid        NOT NULL,
    secret     bytea       NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT source_login_states_source_id_fkey FOREIGN KEY (tenant_id, source_id) REFERENCES sources (tenant_id, source_id) ON DELETE CASCADE
);
CREATE INDEX source_login_states_source_id_idx ON source_login_states (tenant_id, source_id);
COMMENT ON TABLE source_login_states IS 'Logins of sources that began and did not finish. Each is for one use.';
COMMENT ON COLUMN source_login_states.state_hash IS 'SHA-256 of the state, which has 256 random bits.';
COMMENT ON COLUMN source_login_states.begun_by IS 'The operator, or else the token, that may finish the login.';
COMMENT ON COLUMN source_login_states.secret IS 'Server, client and code verifier or device code, encrypted with AES-256-GCM.';

CREATE TABLE source_logins (
    tenant_id      uuid        NOT NULL,
    source_id      text        NOT NULL,
    issuer         text        NOT NULL,
    scope          text        NOT NULL DEFAULT '',
    secret         bytea       NOT NULL,
    login_by       text        NOT NULL,
    login_at       timestamptz NOT NULL DEFAULT now(),
    expires_at     timestamptz,
    renew_at       timestamptz,
    renewed_at     timestamptz NOT NULL DEFAULT now(),
    version        bigint      NOT NULL DEFAULT 1,
    renewal        uuid,
    renewing_until timestamptz,
    failures       integer     NOT NULL DEFAULT 0,
    lost_at        timestamptz,
    lost_reason    text,
    CONSTRAINT source_logins_pkey PRIMARY KEY (tenant_id, source_id),
    CONSTRAINT source_logins_source_id_fkey FOREIGN KEY (tenant_id, source_id) REFERENCES sources (tenant_id, source_id) ON DELETE CASCADE,
    CONSTRAINT source_logins_lost_check CHECK ((lost_at IS NULL) = (lost_reason IS NULL)),
    CONSTRAINT source_logins_renewal_check CHECK ((renewal IS NULL) = (renewing_until IS NULL))
);
CREATE INDEX source_logins_renew_at_idx ON source_logins (renew_at) WHERE lost_at IS NULL;
COMMENT ON TABLE source_logins IS 'Tokens of sources that log in with OAuth.';
COMMENT ON COLUMN source_logins.secret IS 'Tokens, client and server, encrypted with AES-256-GCM. Only workers decrypt it.';
COMMENT ON COLUMN source_logins.renew_at IS 'When a worker renews the token, or finds that it cannot be renewed; NULL for a token without an end.';
COMMENT ON COLUMN source_logins.renewed_at IS 'When the current token was issued.';
COMMENT ON COLUMN source_logins.version IS 'Number of the token: one renewal at a time replaces it.';
COMMENT ON COLUMN source_logins.renewal IS 'The renewal under way, and in renewing_until the end of its lease. One whose lease ended was interrupted.';
COMMENT ON COLUMN source_logins.failures IS 'Number of renewals in a row that found the authorization server unavailable.';
COMMENT ON COLUMN source_logins.lost_at IS 'When the authorization server refused to renew; calls wait or fail until somebody logs in.';
CREATE TRIGGER source_logins_bump_insert AFTER INSERT ON source_logins REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER source_logins_bump_update AFTER UPDATE ON source_logins FOR EACH ROW
    WHEN ((OLD.login_at, OLD.lost_at) IS DISTINCT FROM (NEW.login_at, NEW.lost_at)) EXECUTE FUNCTION bump_config_version_row();
CREATE TRIGGER source_logins_bump_delete AFTER DELETE ON source_logins REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();

-- +goose StatementBegin
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['source_clients', 'source_login_states', 'source_logins'] LOOP
        EXECUTE format('ALTER TABLE %I OWNER TO countersign_owner', t);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_api USING (tenant_id = (SELECT current_tenant())) WITH CHECK (tenant_id = (SELECT current_tenant()))', t || '_api', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_worker USING (true) WITH CHECK (true)', t || '_worker', t);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO countersign_api', t);
    END LOOP;
END
$$;
-- +goose StatementEnd
GRANT SELECT, DELETE ON source_clients TO countersign_worker;
GRANT SELECT, UPDATE ON source_logins TO countersign_worker;
