-- +goose Up

-- A try may have no arguments: its tool takes none, or they are erased.
CREATE OR REPLACE FUNCTION triage_tag_args_allowed(args jsonb, fields jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, countersign_data, pg_temp
AS $$
    SELECT jsonb_typeof(args) = 'object' AND jsonb_typeof(fields) = 'array' AND coalesce((
        SELECT count(1) = count(DISTINCT f ->> 'pointer')
            AND coalesce(bool_and(coalesce(f ->> 'pointer' ~ '^(/[A-Za-z0-9_-]+){1,6}$' AND jsonb_typeof(f -> 'value') = 'string'
                AND CASE
                    WHEN f ->> 'origin' IN ('header', 'config', 'span') THEN args #> string_to_array(substr(f ->> 'pointer', 2), '/') = f -> 'value'
                    WHEN f ->> 'origin' = 'literal' THEN jsonb_typeof(args #> string_to_array(substr(f ->> 'pointer', 2), '/')) IN ('number', 'boolean')
                        AND args #>> string_to_array(substr(f ->> 'pointer', 2), '/') = f ->> 'value'
                    ELSE false
                END, false)), args = '{}')
            AND count(1) = (SELECT count(1) FROM jsonb_path_query(args, 'strict $.** ? (@.type() != "object" && @.type() != "array")'))
        FROM jsonb_array_elements(fields) f
    ), false)
$$;

-- erase_tries erases the arguments of tries of action tags, which text of mail is
-- in. The functions below call it, and no role.
CREATE FUNCTION erase_tries(tenants uuid[], names text[]) RETURNS void
    LANGUAGE sql SET search_path = pg_catalog, countersign_data, pg_temp
AS $$
    WITH tries AS MATERIALIZED (
        SELECT r.tenant_id, r.external_id, r.proposal_id
        FROM unnest(tenants, names) x (tenant_id, external_id)
        JOIN triage_proposals r ON r.tenant_id = x.tenant_id AND r.external_id = x.external_id AND r.action = 'tag'
    ), bodies AS (
        UPDATE proposals p SET body = '{}', bytes = 2 FROM tries r WHERE p.tenant_id = r.tenant_id AND p.proposal_id = r.proposal_id
    ), edited AS (
        UPDATE approvals p SET proposed_args = NULL FROM tries r JOIN actions a ON a.tenant_id = r.tenant_id AND a.external_id = r.external_id
        WHERE p.tenant_id = a.tenant_id AND p.action_id = a.action_id AND p.proposed_args IS NOT NULL
    ), args AS (
        UPDATE actions a SET args = '{}' FROM tries r WHERE a.tenant_id = r.tenant_id AND a.external_id = r.external_id
    )
    UPDATE triage_proposals t SET fields = '[]', envelope = jsonb_set(t.envelope, '{args}', '{}')
    FROM tries r WHERE t.tenant_id = r.tenant_id AND t.external_id = r.external_id
$$;

-- erase_old_tries deletes rows of the log of tries that are older than 90 days, and
-- erases the arguments of these tries, and of ended tries of that age that triage has
-- not logged because it does not read their account. It returns the number of tries.
-- +goose StatementBegin
CREATE FUNCTION erase_old_tries(most bigint) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, countersign_data, pg_temp
AS $$
DECLARE
    tenants uuid[];
    names text[];
BEGIN
    WITH deleted AS (
        DELETE FROM triage_tag_log l
        USING (
            SELECT o.tenant_id, o.log_id FROM triage_tag_log o WHERE o.processed_at < now() - interval '90 days'
            ORDER BY o.processed_at LIMIT most FOR UPDATE SKIP LOCKED
        ) o
        WHERE l.tenant_id = o.tenant_id AND l.log_id = o.log_id
        RETURNING l.tenant_id, coalesce(l.external_id, '') AS external_id
    ), unlogged AS (
        SELECT t.tenant_id, t.external_id
        FROM triage_tags t
        JOIN triage_proposals r ON r.tenant_id = t.tenant_id AND r.external_id = t.external_id
        LEFT JOIN envelopes e ON e.tenant_id = t.tenant_id AND e.external_id = t.external_id
        WHERE t.external_id IS NOT NULL AND r.proposed_at < now() - interval '90 days' AND r.fields <> '[]'
            AND CASE WHEN e.action_id IS NULL THEN NOT EXISTS (
                    SELECT FROM proposals p WHERE p.tenant_id = r.tenant_id AND p.proposal_id = r.proposal_id AND p.answered_at IS NULL)
                ELSE e.phase IN ('completed', 'failed', 'denied', 'expired', 'undone', 'skipped') END
        LIMIT most
    )
    SELECT array_agg(x.tenant_id), array_agg(x.external_id) INTO tenants, names
    FROM (SELECT d.tenant_id, d.external_id FROM deleted d UNION SELECT u.tenant_id, u.external_id FROM unlogged u) x;
    PERFORM erase_tries(tenants, names);
    RETURN coalesce(cardinality(names), 0);
END
$$;
-- +goose StatementEnd

-- triage_erase_messages erases the arguments of all tries about messages of the
-- tenant, before the messages are deleted.
CREATE FUNCTION triage_erase_messages(messages uuid[]) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, countersign_data, pg_temp
AS $$
    SELECT count(1)
    FROM (
        SELECT array_agg(r.tenant_id) AS tenants, array_agg(r.external_id) AS names
        FROM triage_proposals r
        WHERE r.tenant_id = (SELECT current_tenant()) AND r.message_id = ANY (messages) AND r.action = 'tag'
    ) r
    CROSS JOIN LATERAL erase_tries(r.tenants, r.names)
$$;

-- The functions run as the owner, to whom FORCE applies.
CREATE POLICY triage_tag_log_owner_prune ON triage_tag_log TO countersign_owner USING (true);
CREATE POLICY triage_tags_owner_prune ON triage_tags FOR SELECT TO countersign_owner USING (true);
CREATE POLICY approvals_owner_prune ON approvals TO countersign_owner USING (true);
CREATE INDEX triage_tag_log_age_idx ON triage_tag_log (processed_at);

ALTER FUNCTION erase_tries(uuid[], text[]) OWNER TO countersign_owner;
ALTER FUNCTION erase_old_tries(bigint) OWNER TO countersign_owner;
ALTER FUNCTION triage_erase_messages(uuid[]) OWNER TO countersign_owner;
REVOKE EXECUTE ON FUNCTION erase_tries(uuid[], text[]), erase_old_tries(bigint), triage_erase_messages(uuid[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION erase_old_tries(bigint) TO countersign_worker;
GRANT EXECUTE ON FUNCTION triage_erase_messages(uuid[]) TO countersign_api;
