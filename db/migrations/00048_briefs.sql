-- +goose Up

-- The briefs and alerts that were made for a channel of an account. A row is a message
-- to the owner, and is proposed like any other.
CREATE TABLE triage_briefs (
    tenant_id    uuid        NOT NULL,
    external_id  text        NOT NULL CONSTRAINT triage_briefs_external_id_check CHECK (external_id ~ '^triage:brief:[0-9a-f]{64}$'),
    account_id   uuid        NOT NULL,
    kind         text        NOT NULL CONSTRAINT triage_briefs_kind_check CHECK (kind IN ('morning', 'evening', 'alert')),
    channel      text        NOT NULL,
    due_at       timestamptz NOT NULL,
    until_at     timestamptz NOT NULL,
    envelope     jsonb       NOT NULL,
    proposal_id  uuid,
    made_at      timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT triage_briefs_pkey PRIMARY KEY (tenant_id, external_id),
    CONSTRAINT triage_briefs_account_fkey FOREIGN KEY (tenant_id, account_id) REFERENCES triage_accounts (tenant_id, account_id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX triage_briefs_due_key ON triage_briefs (tenant_id, account_id, channel, due_at) WHERE kind <> 'alert';
CREATE INDEX triage_briefs_channel_idx ON triage_briefs (tenant_id, account_id, channel, made_at DESC);
COMMENT ON COLUMN triage_briefs.channel IS 'The channel in the settings of the account, as text.';
COMMENT ON COLUMN triage_briefs.due_at IS 'When the brief was due: one a channel. until_at is the end of the time that it covers.';
COMMENT ON COLUMN triage_briefs.envelope IS 'The proposal, or {} after 30 days.';

ALTER TABLE triage_messages ADD COLUMN alerted_at timestamptz;
COMMENT ON COLUMN triage_messages.alerted_at IS 'When an alert told its owner that the message is urgent; NULL for none.';

-- A brief goes to a channel in the settings of its account: over Slack, or by mail to
-- one of its own addresses.
-- +goose StatementBegin
CREATE FUNCTION triage_check_brief() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, countersign_data, pg_temp
AS $$
DECLARE
    e        constant jsonb := NEW.envelope;
    args     constant jsonb := NEW.envelope -> 'args';
    a        triage_accounts;
    channels jsonb;
BEGIN
    SELECT * INTO a FROM triage_accounts t WHERE t.tenant_id = NEW.tenant_id AND t.account_id = NEW.account_id;
    channels := coalesce(a.proposals #> '{brief,channels}', '[]');
    IF NOT coalesce(e ->> 'type' = 'mcp.exec' AND e ->> 'external_id' = NEW.external_id AND e - '{type,external_id,tool,args,risk,constraints}'::text[] = '{}'
        AND (e -> 'tool') - '{name,source}'::text[] = '{}' AND (e -> 'constraints') - 'must_run_before' = '{}'
        AND CASE e #>> '{tool,name}'
            WHEN 'message.brief' THEN args - '{account,to,subject,text}'::text[] = '{}' AND e #>> '{tool,source}' = a.proposals ->> 'source'
                AND args ->> 'account' = a.proposals ->> 'account' AND channels @> jsonb_build_array(jsonb_build_object('to', args ->> 'to'))
                AND EXISTS (SELECT FROM jsonb_array_elements_text(a.settings -> 'addresses') o WHERE lower(o) = lower(args ->> 'to'))
            WHEN 'slack.message.send' THEN args - '{channel,text,blocks}'::text[] = '{}'
                AND channels @> jsonb_build_array(jsonb_build_object('source', e #>> '{tool,source}', 'channel', args ->> 'channel'))
            WHEN 'slack.webhook.send' THEN args - '{text,blocks}'::text[] = '{}'
                AND EXISTS (SELECT FROM jsonb_array_elements(channels) c WHERE c ->> 'source' = e #>> '{tool,source}' AND NOT c ? 'channel')
            ELSE false
        END, false) THEN
        RAISE EXCEPTION 'the settings of the account have no such channel for briefs' USING ERRCODE = 'check_violation', CONSTRAINT = 'triage_briefs_channel_check';
    END IF;
    RETURN NEW;
END
$$;
-- +goose StatementEnd
ALTER FUNCTION triage_check_brief() OWNER TO countersign_owner;
REVOKE EXECUTE ON FUNCTION triage_check_brief() FROM PUBLIC;
CREATE TRIGGER triage_briefs_channel BEFORE INSERT ON triage_briefs FOR EACH ROW EXECUTE FUNCTION triage_check_brief();

ALTER TABLE triage_briefs OWNER TO countersign_owner;
ALTER TABLE triage_briefs ENABLE ROW LEVEL SECURITY;
ALTER TABLE triage_briefs FORCE ROW LEVEL SECURITY;
CREATE POLICY triage_briefs_api ON triage_briefs TO countersign_api USING (tenant_id = (SELECT current_tenant())) WITH CHECK (tenant_id = (SELECT current_tenant()));
CREATE POLICY triage_briefs_triage ON triage_briefs TO countersign_triage USING (tenant_id = (SELECT triage_tenant())) WITH CHECK (tenant_id = (SELECT triage_tenant()));
-- countersign.propose_many compares what a login of triage proposes.
CREATE POLICY triage_briefs_owner ON triage_briefs FOR SELECT TO countersign_owner USING (true);
GRANT SELECT ON triage_briefs TO countersign_api, countersign_triage;
GRANT DELETE ON triage_briefs TO countersign_api; -- erasing an account
GRANT INSERT, UPDATE (proposal_id, envelope) ON triage_briefs TO countersign_triage;

-- A login of triage proposes its briefs too.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION countersign.propose_many(envelopes jsonb[]) RETURNS uuid[]
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, countersign_data, pg_temp
AS $$
DECLARE
    most    constant integer := 10000;
    n       constant integer := cardinality(envelopes);
    bound   db_logins;
    texts   text[];
    bad     text;
    missing bigint;
    total   bigint;
    waiting bigint;
    waiting_bytes bigint;
    counted boolean;
    ids     uuid[];
BEGIN
    SELECT l.* INTO bound FROM db_logins l WHERE l.login = session_user AND l.unbound_at IS NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the database login % may not propose', session_user
            USING ERRCODE = 'insufficient_privilege', HINT = 'An administrator binds it to a tenant: countersign db-login bind.';
    END IF;
    IF envelopes IS NULL THEN
        RAISE EXCEPTION 'the list of envelopes is null'
            USING ERRCODE = 'null_value_not_allowed', HINT = 'array_agg over no rows is null: coalesce(array_agg(…), ''{}'') proposes nothing.';
    END IF;
    -- A login of triage proposes what its own tables have, where every value has an
    -- origin that its place allows, and nothing else. Whoever migrates the database is
    -- a member of all roles.
    IF pg_has_role(session_user, 'countersign_triage', 'MEMBER') AND NOT pg_has_role(session_user, 'countersign_owner', 'MEMBER') AND EXISTS (
        SELECT 1 FROM unnest(envelopes) AS e (body)
        WHERE NOT EXISTS (
            SELECT 1 FROM triage_proposals t
            WHERE t.tenant_id = bound.tenant_id AND t.external_id = e.body ->> 'external_id' AND t.envelope = e.body AND t.proposal_id IS NULL
        )
        AND NOT EXISTS (
            SELECT 1 FROM triage_briefs b
            WHERE b.tenant_id = bound.tenant_id AND b.external_id = e.body ->> 'external_id' AND b.envelope = e.body AND b.proposal_id IS NULL
        )
    ) THEN
        RAISE EXCEPTION 'the database login % proposes what it has in triage_proposals, and nothing else', session_user
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF n > most THEN
        RAISE EXCEPTION '% envelopes at once, of at most %', n, most USING ERRCODE = 'program_limit_exceeded', HINT = 'Call it again with the others.';
    END IF;
    SELECT
        string_agg(CASE
            WHEN jsonb_typeof(e.body) <> 'object' THEN format('envelope %s is no JSON object', e.at)
            WHEN octet_length(e.text) > 262144 THEN format('envelope %s has more than 262144 bytes', e.at)
            WHEN e.body ? 'action_id' THEN format('envelope %s has an action_id; leave it out, since propose returns it', e.at)
        END, '; '),
        min(e.at) FILTER (WHERE e.body IS NULL),
        coalesce(sum(octet_length(e.text)), 0),
        array_agg(e.text),
        -- UUIDv7: milliseconds, the fraction of them in 12 bits, and 62 random bits.
        -- PostgreSQL has a function for it from version 18 on.
        array_agg(encode(
            overlay(
                uuid_send(gen_random_uuid()) PLACING
                substring(int8send(e.us / 1000) FROM 3) || substring(int8send(28672 + (e.us % 1000) * 4096 / 1000) FROM 7)
                FROM 1 FOR 8),
            'hex')::uuid)
    INTO bad, missing, total, texts, ids
    FROM (
        SELECT u.body, u.body::text AS text, u.at, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS us
        FROM unnest(envelopes) WITH ORDINALITY AS u (body, at)
        ORDER BY u.at
    ) AS e;
    IF missing IS NOT NULL THEN
        RAISE EXCEPTION 'envelope % is null', missing USING ERRCODE = 'null_value_not_allowed';
    END IF;
    IF bad IS NOT NULL THEN
        RAISE EXCEPTION '%', left(bad, 500) USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF n > bound.waiting_max OR total > bound.waiting_bytes_max THEN
        RAISE EXCEPTION '% envelopes with % bytes at once are more than may wait of the database login %: % with % bytes',
            n, total, session_user, bound.waiting_max, bound.waiting_bytes_max
            USING ERRCODE = 'program_limit_exceeded',
                HINT = 'Propose them in smaller batches, each in a transaction of its own; countersign db-login bind --max-waiting sets the bound.';
    END IF;
    -- What a worker counted holds for as long as it goes on counting. Else they are
    -- counted here, on average 32 times while as much is proposed as may wait, and
    -- always when the numbers of the first and the last leave room for too many:
    -- counting takes as long as there is to count.
    counted := bound.counted_at > clock_timestamp() - interval '10 seconds';
    waiting := bound.waiting;
    waiting_bytes := bound.waiting_bytes;
    IF random() * bound.waiting_max < n * 32.0 OR random() * bound.waiting_bytes_max < total * 32.0 OR counted IS NOT TRUE AND (
        SELECT max(p.proposal_no) - min(p.proposal_no) FROM proposals p WHERE p.login_id = bound.login_id AND p.answered_at IS NULL
    ) >= bound.waiting_max THEN
        SELECT count(1), coalesce(sum(w.bytes), 0) INTO waiting, waiting_bytes FROM (
            SELECT p.bytes FROM proposals p
            WHERE p.login_id = bound.login_id AND p.answered_at IS NULL
            LIMIT bound.waiting_max
        ) w;
        counted := true;
    END IF;
    IF counted AND (waiting + n > bound.waiting_max OR waiting_bytes + total > bound.waiting_bytes_max) THEN
        RAISE EXCEPTION 'too many proposals of the database login % wait: % with % bytes, of at most % with % bytes; these are % with % bytes',
            session_user, waiting, waiting_bytes, bound.waiting_max, bound.waiting_bytes_max, n, total
            USING ERRCODE = 'configuration_limit_exceeded', HINT = 'Propose again when workers have taken some of them.';
    END IF;
    INSERT INTO proposals (tenant_id, proposal_id, login_id, body, bytes)
    SELECT bound.tenant_id, e.id, bound.login_id, e.body, octet_length(e.body)
    FROM unnest(ids, texts) AS e (id, body);
    -- It is delivered after the commit, once for a transaction.
    NOTIFY countersign_proposals;
    RETURN coalesce(ids, '{}');
END
$$;
-- +goose StatementEnd
