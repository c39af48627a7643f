-- +goose Up

-- Action tags: what the owner of a mailbox sets on a message so that a tool is
-- called with data of it. Each try is one envelope, and a row of the log.
CREATE TABLE triage_tags (
    tenant_id    uuid        NOT NULL,
    message_id   uuid        NOT NULL,
    action       text        NOT NULL CONSTRAINT triage_tags_action_check CHECK (action ~ '^[a-z0-9][a-z0-9_.-]{0,49}$'),
    account_id   uuid        NOT NULL,
    state        text        NOT NULL CONSTRAINT triage_tags_state_check CHECK (state IN ('due', 'open', 'skipped', 'leaving', 'gone')),
    try          integer     NOT NULL DEFAULT 1,
    failures     integer     NOT NULL DEFAULT 0,
    in_mailbox   boolean     NOT NULL DEFAULT false,
    external_id  text,
    problem      text        NOT NULL DEFAULT '',
    tagged_by    text        NOT NULL,
    tagged_at    timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT triage_tags_pkey PRIMARY KEY (tenant_id, message_id, action),
    CONSTRAINT triage_tags_message_fkey FOREIGN KEY (tenant_id, message_id) REFERENCES triage_messages (tenant_id, message_id) ON DELETE CASCADE,
    CONSTRAINT triage_tags_open_check CHECK ((external_id IS NOT NULL) = (state IN ('open', 'leaving')))
);
CREATE INDEX triage_tags_due_idx ON triage_tags (tenant_id, account_id, tagged_at) WHERE state = 'due';
CREATE INDEX triage_tags_open_idx ON triage_tags (tenant_id, account_id) WHERE external_id IS NOT NULL;
CREATE INDEX triage_tags_mailbox_idx ON triage_tags (tenant_id, account_id) WHERE in_mailbox;
COMMENT ON COLUMN triage_tags.state IS 'due: no try is open; open: a try is open; skipped: no try begins until somebody retries; leaving: removed while a try is open; gone: no tag.';
COMMENT ON COLUMN triage_tags.try IS 'The number of the open try, or of the next one. A number is not used again.';
COMMENT ON COLUMN triage_tags.failures IS 'The number of consecutive failures.';
COMMENT ON COLUMN triage_tags.in_mailbox IS 'The tag is a keyword of the message in its mailbox.';
COMMENT ON COLUMN triage_tags.external_id IS 'The proposal of the open try.';
COMMENT ON COLUMN triage_tags.problem IS 'Why no try begins: a missing tool. Empty otherwise.';

CREATE TABLE triage_tag_log (
    tenant_id    uuid        NOT NULL,
    log_id       uuid        NOT NULL,
    account_id   uuid        NOT NULL,
    message_id   uuid        NOT NULL,
    action       text        NOT NULL,
    try          integer     NOT NULL,
    external_id  text,
    source_id    text        NOT NULL,
    tool_name    text        NOT NULL,
    extracted    jsonb       NOT NULL DEFAULT '[]',
    result       json,
    status       text        NOT NULL CONSTRAINT triage_tag_log_status_check CHECK (status IN ('success', 'failed', 'skipped')),
    error        text        NOT NULL DEFAULT '',
    processed_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT triage_tag_log_pkey PRIMARY KEY (tenant_id, log_id),
    CONSTRAINT triage_tag_log_message_fkey FOREIGN KEY (tenant_id, message_id) REFERENCES triage_messages (tenant_id, message_id) ON DELETE CASCADE
);
CREATE INDEX triage_tag_log_time_idx ON triage_tag_log (tenant_id, processed_at DESC, log_id DESC);
CREATE INDEX triage_tag_log_message_idx ON triage_tag_log (tenant_id, message_id);
COMMENT ON COLUMN triage_tag_log.extracted IS 'The arguments with their origins (plan.Row).';
COMMENT ON COLUMN triage_tag_log.result IS 'The result of the tool as the execution log has it.';

ALTER TABLE triage_locations ADD COLUMN tagged boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN triage_locations.tagged IS 'The flags contain an action tag.';
CREATE INDEX triage_locations_tagged_idx ON triage_locations (tenant_id, account_id) WHERE tagged;

-- triage_tag_args_allowed reports whether every value in the arguments of a try
-- is a text that stands among the fields, at its place: text of the message, of
-- its header, or of the configuration.
CREATE FUNCTION triage_tag_args_allowed(args jsonb, fields jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, countersign_data, pg_temp
AS $$
    SELECT jsonb_typeof(args) = 'object' AND jsonb_typeof(fields) = 'array' AND coalesce((
        SELECT count(1) = count(DISTINCT f ->> 'pointer')
            AND bool_and(coalesce(f ->> 'origin' IN ('header', 'config', 'span') AND f ->> 'pointer' ~ '^(/[A-Za-z0-9_-]+){1,2}$'
                AND jsonb_typeof(f -> 'value') = 'string' AND args #> string_to_array(substr(f ->> 'pointer', 2), '/') = f -> 'value', false))
            AND count(1) = (SELECT count(1) FROM jsonb_path_query(args, 'strict $.** ? (@.type() != "object" && @.type() != "array")'))
        FROM jsonb_array_elements(fields) f
    ), false)
$$;
ALTER FUNCTION triage_tag_args_allowed(jsonb, jsonb) OWNER TO countersign_owner;
REVOKE EXECUTE ON FUNCTION triage_tag_args_allowed(jsonb, jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION triage_tag_args_allowed(jsonb, jsonb) TO countersign_triage, countersign_worker, countersign_api;

ALTER TABLE triage_proposals
    DROP CONSTRAINT triage_proposals_envelope_check,
    ADD CONSTRAINT triage_proposals_envelope_check CHECK (
        envelope ->> 'type' = 'mcp.exec'
        AND envelope ->> 'external_id' = external_id AND external_id ~ '^triage:(tag:)?[0-9a-f]{64}$'
        AND (action = 'tag') = starts_with(external_id, 'triage:tag:')
        AND envelope - '{type,external_id,tool,args,risk,approval,constraints}'::text[] = '{}'
        AND coalesce(envelope -> 'constraints', '{}') - 'must_run_before' = '{}'
        AND (envelope #>> '{tool,name}' = 'message.away') = (envelope #>> '{constraints,must_run_before}' IS NOT NULL)
        AND coalesce(envelope ->> 'approval', 'required') = 'required'
        AND (envelope -> 'tool') - '{name,source}'::text[] = '{}'
    ),
    DROP CONSTRAINT triage_proposals_origin_check,
    ADD CONSTRAINT triage_proposals_origin_check CHECK (
        CASE WHEN action = 'tag' THEN triage_tag_args_allowed(envelope -> 'args', fields)
            ELSE triage_args_allowed(envelope #>> '{tool,name}', envelope -> 'args', fields) END
    );
COMMENT ON COLUMN triage_proposals.fields IS 'Every value of the arguments with its pointer and where it comes from: header, config, template, enum, calendar, model_text or span.';

-- A proposal of a tag is the open try of one, for the tool that the configuration
-- of the account, or else the built-in registry, names for its action.
-- +goose StatementBegin
CREATE FUNCTION triage_check_try() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, countersign_data, pg_temp
AS $$
BEGIN
    IF NOT EXISTS (
        SELECT 1
        FROM triage_tags t
        JOIN triage_accounts a ON a.tenant_id = t.tenant_id AND a.account_id = t.account_id
        WHERE t.tenant_id = NEW.tenant_id AND t.message_id = NEW.message_id AND t.account_id = NEW.account_id AND t.external_id = NEW.external_id
            AND coalesce(a.proposals -> 'actions' -> t.action, CASE WHEN t.action IN ('add-contact', 'create-reminder') THEN jsonb_build_object('source', 'dav', 'tool', t.action) END)
                @> jsonb_build_object('source', NEW.envelope #>> '{tool,source}', 'tool', NEW.envelope #>> '{tool,name}')
    ) THEN
        RAISE EXCEPTION 'no open try of an action tag has this proposal' USING ERRCODE = 'check_violation', CONSTRAINT = 'triage_proposals_try_check';
    END IF;
    RETURN NEW;
END
$$;
-- +goose StatementEnd
ALTER FUNCTION triage_check_try() OWNER TO countersign_owner;
REVOKE EXECUTE ON FUNCTION triage_check_try() FROM PUBLIC;
CREATE TRIGGER triage_proposals_try BEFORE INSERT ON triage_proposals FOR EACH ROW WHEN (NEW.action = 'tag') EXECUTE FUNCTION triage_check_try();

-- triage_tools returns the state of tools that actions of tags call: available,
-- missing, or unreachable while their source does not answer; the schema of their
-- arguments; and the owner's time zone.
CREATE FUNCTION triage_tools(wanted jsonb) RETURNS TABLE (source text, tool text, state text, input_schema jsonb, zone text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, countersign_data, pg_temp
AS $$
    SELECT w.source, w.tool,
        CASE WHEN s.list_failures > 0 OR b.state = 'open' THEN 'unreachable' WHEN t.name IS NULL THEN 'missing' ELSE 'available' END,
        t.input_schema, n.timezone
    FROM jsonb_to_recordset(wanted) w (source text, tool text)
    JOIN tenants n ON n.tenant_id = triage_tenant()
    LEFT JOIN sources s ON s.tenant_id = n.tenant_id AND s.source_id = w.source AND s.enabled
    LEFT JOIN breakers b ON b.tenant_id = s.tenant_id AND b.source_id = s.source_id
    LEFT JOIN tools t ON t.tenant_id = s.tenant_id AND t.source_id = s.source_id AND t.name = w.tool AND t.gone_at IS NULL
$$;

-- triage_tries returns the open tries of an account that have ended: sent,
-- conflict, failed, denied, expired, undone, skipped, or refused before they
-- became an action.
CREATE FUNCTION triage_tries(account uuid) RETURNS TABLE (message_id uuid, action text, outcome text, problem text, result json)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, countersign_data, pg_temp
AS $$
    SELECT t.message_id, t.action, CASE WHEN e.action_id IS NULL THEN 'refused' WHEN e.phase IN ('completed', 'failed') THEN e.status ELSE e.phase END,
        coalesce(e.message, e.code, p.problem ->> 'detail', ''), e.result
    FROM triage_tags t
    JOIN triage_proposals r ON r.tenant_id = t.tenant_id AND r.external_id = t.external_id
    LEFT JOIN envelopes e ON e.tenant_id = t.tenant_id AND e.external_id = t.external_id
    LEFT JOIN proposals p ON p.tenant_id = r.tenant_id AND p.proposal_id = r.proposal_id
    WHERE t.tenant_id = triage_tenant() AND t.account_id = account AND t.external_id IS NOT NULL
        AND CASE WHEN e.action_id IS NULL THEN p.problem IS NOT NULL ELSE e.phase IN ('completed', 'failed', 'denied', 'expired', 'undone', 'skipped') END
$$;

-- triage_erase_tries deletes the log of tries of an account that is older than 90
-- days, and erases their arguments, which text of mail is in, everywhere else.
CREATE FUNCTION triage_erase_tries(account uuid) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, countersign_data, pg_temp
AS $$
    WITH deleted AS (
        DELETE FROM triage_tag_log l
        WHERE l.tenant_id = triage_tenant() AND l.account_id = account AND l.processed_at < now() - interval '90 days'
        RETURNING l.tenant_id, l.external_id
    ), proposed AS (
        DELETE FROM triage_proposals r USING deleted d WHERE r.tenant_id = d.tenant_id AND r.external_id = d.external_id
        RETURNING r.tenant_id, r.external_id, r.proposal_id
    ), bodies AS (
        UPDATE proposals p SET body = '{}', bytes = 2 FROM proposed r WHERE p.tenant_id = r.tenant_id AND p.proposal_id = r.proposal_id
    ), edited AS (
        UPDATE approvals p SET proposed_args = NULL FROM proposed r JOIN actions a ON a.tenant_id = r.tenant_id AND a.external_id = r.external_id
        WHERE p.tenant_id = a.tenant_id AND p.action_id = a.action_id AND p.proposed_args IS NOT NULL
    ), args AS (
        UPDATE actions a SET args = '{}' FROM proposed r WHERE a.tenant_id = r.tenant_id AND a.external_id = r.external_id
    )
    SELECT count(1) FROM deleted
$$;

-- +goose StatementBegin
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['triage_tags', 'triage_tag_log'] LOOP
        EXECUTE format('ALTER TABLE %I OWNER TO countersign_owner', t);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_api USING (tenant_id = (SELECT current_tenant())) WITH CHECK (tenant_id = (SELECT current_tenant()))', t || '_api', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_triage USING (tenant_id = (SELECT triage_tenant())) WITH CHECK (tenant_id = (SELECT triage_tenant()))', t || '_triage', t);
        EXECUTE format('CREATE POLICY %I ON %I FOR SELECT TO countersign_owner USING (tenant_id = (SELECT triage_tenant()))', t || '_owner', t);
        EXECUTE format('GRANT SELECT ON %I TO countersign_api, countersign_triage', t);
    END LOOP;
    -- The functions run as the owner, to whom FORCE applies, for the tenant of a
    -- login of triage alone.
    FOREACH t IN ARRAY ARRAY['sources', 'tools', 'breakers'] LOOP
        EXECUTE format('CREATE POLICY %I ON %I FOR SELECT TO countersign_owner USING (tenant_id = (SELECT triage_tenant()))', t || '_owner_triage', t);
    END LOOP;
    CREATE POLICY triage_tag_log_owner_erase ON triage_tag_log FOR DELETE TO countersign_owner USING (tenant_id = (SELECT triage_tenant()));
    CREATE POLICY triage_proposals_owner_erase ON triage_proposals FOR DELETE TO countersign_owner USING (tenant_id = (SELECT triage_tenant()));
    CREATE POLICY approvals_owner_erase ON approvals FOR UPDATE TO countersign_owner USING (tenant_id = (SELECT triage_tenant()));
END
$$;
-- +goose StatementEnd

-- People set, remove and retry tags; triage does the rest.
GRANT INSERT, UPDATE (state, failures, tagged_by, tagged_at, problem) ON triage_tags TO countersign_api;
GRANT INSERT, UPDATE ON triage_tags TO countersign_triage;
GRANT INSERT ON triage_tag_log TO countersign_triage;

ALTER FUNCTION triage_tools(jsonb) OWNER TO countersign_owner;
ALTER FUNCTION triage_tries(uuid) OWNER TO countersign_owner;
ALTER FUNCTION triage_erase_tries(uuid) OWNER TO countersign_owner;
REVOKE EXECUTE ON FUNCTION triage_tools(jsonb), triage_tries(uuid), triage_erase_tries(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION triage_tools(jsonb), triage_tries(uuid), triage_erase_tries(uuid) TO countersign_triage;
