-- +goose Up

ALTER TABLE api_tokens ADD COLUMN external_id_prefix text CONSTRAINT api_tokens_external_id_prefix_check CHECK (external_id_prefix <> '');
ALTER TABLE db_logins ADD COLUMN external_id_prefix text CONSTRAINT db_logins_external_id_prefix_check CHECK (external_id_prefix <> '');
COMMENT ON COLUMN api_tokens.external_id_prefix IS 'Prefix that the external ids of its proposals and workflows must have; NULL means any.';
COMMENT ON COLUMN db_logins.external_id_prefix IS 'As in api_tokens.';

-- token_external_id_prefix returns the prefix of a token that authenticate found.
CREATE FUNCTION token_external_id_prefix(tenant uuid, token uuid) RETURNS text
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, countersign_data, pg_temp
AS $$ SELECT t.external_id_prefix FROM countersign_data.api_tokens t WHERE t.tenant_id = tenant AND t.token_id = token $$;
ALTER FUNCTION token_external_id_prefix(uuid, uuid) OWNER TO countersign_owner;
REVOKE EXECUTE ON FUNCTION token_external_id_prefix(uuid, uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION token_external_id_prefix(uuid, uuid) TO countersign_api;

-- proposal_status answers a login that is bound, about its proposals to the tenant,
-- those of its earlier bindings included. A login that was unbound gets no row.
CREATE OR REPLACE FUNCTION countersign.proposal_status(proposal uuid)
    RETURNS TABLE (state text, action_id uuid, phase text, problem jsonb)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, countersign_data, pg_temp
AS $$
    SELECT
        CASE WHEN p.answered_at IS NULL THEN 'waiting' WHEN p.problem IS NOT NULL THEN 'refused' ELSE 'duplicate' END,
        p.action_id, NULL::text, p.problem
    FROM countersign_data.db_logins b
    JOIN countersign_data.db_logins l ON l.tenant_id = b.tenant_id AND l.login = b.login
    JOIN countersign_data.proposals p ON p.tenant_id = l.tenant_id AND p.login_id = l.login_id AND p.proposal_id = proposal
    WHERE b.login = session_user AND b.unbound_at IS NULL
    UNION ALL
    SELECT 'accepted', e.action_id, e.phase, NULL::jsonb
    FROM countersign_data.db_logins b
    JOIN countersign_data.db_logins l ON l.tenant_id = b.tenant_id AND l.login = b.login
    JOIN countersign_data.envelopes e ON e.tenant_id = l.tenant_id AND e.proposed_by = l.login_id AND e.action_id = proposal
    WHERE b.login = session_user AND b.unbound_at IS NULL
$$;
