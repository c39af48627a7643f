-- +goose Up

-- Who may decide now: votes, grants and tokens count while the people behind them
-- may decide.

ALTER TABLE api_tokens ADD COLUMN shown_to uuid[] NOT NULL DEFAULT '{}';
COMMENT ON COLUMN api_tokens.shown_to IS 'Persons who made an agent''s token or gave it a new secret, except owners with a token that is not narrowed. They do not decide about what it proposes.';

-- Agents' tokens of earlier versions name who issued them by a text, as
-- envelope.NewActor makes it.
UPDATE api_tokens t
SET shown_to = ARRAY[i.person]
FROM (
    SELECT a.tenant_id, a.token_id,
        coalesce(m.operator_id, o.operator_id, m.maker, m.token_id) AS person,
        coalesce(m.role, o.role_set, o.role) AS role,
        m.scopes IS NOT NULL OR m.tools IS NOT NULL AS narrowed
    FROM api_tokens a
    CROSS JOIN LATERAL (
        SELECT
            substring(a.issued_by FROM '\((?:operator [0-9a-f-]{36}, )?token ([0-9a-f-]{36})\)$')::uuid AS token,
            substring(a.issued_by FROM '\(operator ([0-9a-f-]{36})(?:, token [0-9a-f-]{36})?\)$')::uuid AS operator
    ) b
    LEFT JOIN api_tokens m ON m.tenant_id = a.tenant_id AND m.token_id = b.token
    LEFT JOIN operators o ON o.tenant_id = a.tenant_id AND o.operator_id = b.operator
    WHERE a.role = 'agent'
) i
WHERE t.tenant_id = i.tenant_id AND t.token_id = i.token_id AND i.person IS NOT NULL AND (i.role <> 'owner' OR i.narrowed);

-- person_role returns the role of an operator, '' for one who is disabled or has
-- none, and NULL for whoever is no operator.
-- +goose StatementBegin
CREATE FUNCTION person_role(tenant uuid, person uuid) RETURNS text
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, countersign_data, pg_temp
AS $$
    SELECT CASE WHEN o.disabled_at IS NULL THEN coalesce(o.role_set, o.role, '') ELSE '' END
    FROM operators o
    WHERE o.tenant_id = tenant AND o.operator_id = person
$$;
-- +goose StatementEnd

-- grant_holds reports whether whoever made a grant may still decide: an operator
-- with such a role, or a token that is not revoked.
-- +goose StatementBegin
CREATE FUNCTION grant_holds(tenant uuid, person uuid) RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, countersign_data, pg_temp
AS $$
    SELECT coalesce(
        person_role(tenant, person) IN ('operator', 'admin', 'owner'),
        (SELECT t.revoked_at IS NULL FROM api_tokens t WHERE t.tenant_id = tenant AND t.token_id = person),
        true)
$$;
-- +goose StatementEnd

-- vote_counts reports whether a vote counts now: its voter may decide about such a
-- tool, with what they voted with, and is none of those who hold the proposer's
-- token. A token that has expired since counts if a person is known behind it, who
-- may use another one. Without a token, voter is an operator who logged in or used
-- Slack.
-- +goose StatementBegin
CREATE FUNCTION vote_counts(tenant uuid, person uuid, token uuid, proposer uuid, source text, tool text) RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, countersign_data, pg_temp
AS $$
    SELECT coalesce(
        (
            SELECT t.revoked_at IS NULL AND t.role IN ('operator', 'admin', 'owner')
                AND (t.scopes IS NULL OR 'approvals:decide' = ANY (t.scopes))
                AND (t.tools IS NULL OR t.tools && ARRAY[source || ':' || tool, source || ':*', '*:' || tool, '*:*', '*'])
                AND coalesce(
                    person_role(tenant, coalesce(t.operator_id, t.maker)) IN ('operator', 'admin', 'owner'),
                    t.expires_at IS NULL OR t.expires_at > now())
            FROM api_tokens t
            WHERE t.tenant_id = tenant AND t.token_id = token
        ),
        (
            SELECT person_role(tenant, person) IN ('operator', 'admin', 'owner')
                AND (o.issuer IS NULL OR o.slack_user IS NOT NULL
                    OR EXISTS (SELECT FROM identity_providers p WHERE p.tenant_id = tenant AND p.issuer = o.issuer))
            FROM operators o
            WHERE o.tenant_id = tenant AND o.operator_id = person
        ),
        false)
        AND NOT EXISTS (SELECT FROM api_tokens p WHERE p.tenant_id = tenant AND p.token_id = proposer AND person = ANY (p.shown_to))
$$;
-- +goose StatementEnd

-- A token acts as the operator who made it, if it belongs to no other.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION token_revoked(tenant uuid, token uuid) RETURNS boolean
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, countersign_data, pg_temp
AS $$
BEGIN
    RETURN EXISTS (
        SELECT 1
        FROM api_tokens t
        WHERE t.tenant_id = tenant AND t.token_id = token
            AND (t.revoked_at IS NOT NULL OR EXISTS (
                SELECT 1 FROM operators o
                WHERE o.tenant_id = tenant AND o.disabled_at IS NOT NULL
                    AND o.operator_id = CASE WHEN t.operator_id IS NULL AND t.role <> 'agent' THEN t.maker ELSE t.operator_id END)))
        OR EXISTS (SELECT 1 FROM operators o WHERE o.tenant_id = tenant AND o.operator_id = token AND o.disabled_at IS NOT NULL);
END
$$;
-- +goose StatementEnd

-- Grants hold while whoever made them may decide, so that settings change with
-- people.
CREATE TRIGGER operators_bump_update AFTER UPDATE ON operators FOR EACH ROW
    WHEN ((OLD.disabled_at IS NULL, coalesce(OLD.role_set, OLD.role)) IS DISTINCT FROM (NEW.disabled_at IS NULL, coalesce(NEW.role_set, NEW.role)))
    EXECUTE FUNCTION bump_config_version_row();
CREATE TRIGGER api_tokens_bump_update AFTER UPDATE ON api_tokens FOR EACH ROW
    WHEN (OLD.revoked_at IS DISTINCT FROM NEW.revoked_at)
    EXECUTE FUNCTION bump_config_version_row();

COMMENT ON COLUMN sources.accepted_address IS 'Digest of the kind and the address that somebody accepted who may: those at the registration, or later ones. While the present ones differ, all tools of the source have drifted. NULL: nobody has, and all its tools are in quarantine.';

ALTER FUNCTION person_role(uuid, uuid) OWNER TO countersign_owner;
ALTER FUNCTION grant_holds(uuid, uuid) OWNER TO countersign_owner;
ALTER FUNCTION vote_counts(uuid, uuid, uuid, uuid, text, text) OWNER TO countersign_owner;
REVOKE EXECUTE ON FUNCTION person_role(uuid, uuid), grant_holds(uuid, uuid), vote_counts(uuid, uuid, uuid, uuid, text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION person_role(uuid, uuid) TO countersign_api;
GRANT EXECUTE ON FUNCTION grant_holds(uuid, uuid), vote_counts(uuid, uuid, uuid, uuid, text, text) TO countersign_api, countersign_worker;
