-- +goose Up

-- Proposals in SQL: an application calls countersign.propose in its own
-- transaction, and a worker makes actions of what was committed. The functions
-- that applications call have a schema of their own, in which there is nothing
-- else.

-- The database logins that may propose, and as what. No proposal says who it is
-- from: session_user does, which only a superuser can change.
CREATE TABLE db_logins (
    tenant_id     uuid        NOT NULL CONSTRAINT db_logins_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    login_id      uuid        NOT NULL,
    login         text        NOT NULL CONSTRAINT db_logins_login_check CHECK (login ~ '^.{1,63}$'),
    employee_id   uuid,
    session_id    text,
    operator_id   uuid,
    tools         text[]      CONSTRAINT db_logins_tools_check CHECK (cardinality(tools) > 0),
    automations   text[]      CONSTRAINT db_logins_automations_check CHECK (cardinality(automations) > 0),
    employees     text[]      CONSTRAINT db_logins_employees_check CHECK (cardinality(employees) > 0),
    sessions      text[]      CONSTRAINT db_logins_sessions_check CHECK (cardinality(sessions) > 0),
    waiting_max   integer     NOT NULL DEFAULT 250000 CONSTRAINT db_logins_waiting_max_check CHECK (waiting_max BETWEEN 1 AND 10000000),
    waiting_bytes_max bigint  NOT NULL DEFAULT 536870912 CONSTRAINT db_logins_waiting_bytes_max_check CHECK (waiting_bytes_max > 0),
    bound_at      timestamptz NOT NULL DEFAULT now(),
    bound_by      text        NOT NULL DEFAULT '',
    unbound_at    timestamptz,
    held_until    timestamptz,
    waiting       integer     NOT NULL DEFAULT 0,
    waiting_bytes bigint      NOT NULL DEFAULT 0,
    counted_at    timestamptz,
    CONSTRAINT db_logins_pkey PRIMARY KEY (login_id),
    CONSTRAINT db_logins_operator_id_fkey FOREIGN KEY (tenant_id, operator_id) REFERENCES operators (tenant_id, operator_id)
);
CREATE UNIQUE INDEX db_logins_login_key ON db_logins (login) WHERE unbound_at IS NULL;
CREATE INDEX db_logins_tenant_idx ON db_logins (tenant_id, login_id);
COMMENT ON COLUMN db_logins.login_id IS 'What actions name as who proposed them. A login that is bound again gets another one.';
COMMENT ON COLUMN db_logins.operator_id IS 'Operator whose proposals these are, who therefore does not decide about them; NULL if the login stands for itself.';
COMMENT ON COLUMN db_logins.tools IS 'Patterns of the tools it may propose; NULL means all. automations, employees and sessions are what its proposals may name, beside employee_id, as in api_tokens.';
COMMENT ON COLUMN db_logins.waiting_max IS 'About how many of its proposals may wait, and waiting_bytes_max how many bytes they may have. They are counted now and then, since counting for each would take longer than inserting.';
COMMENT ON COLUMN db_logins.waiting IS 'How many of its proposals waited at counted_at, and waiting_bytes how many bytes they had. A worker counts every two seconds while it takes them.';
COMMENT ON COLUMN db_logins.unbound_at IS 'When it was unbound; what waits then is refused.';
COMMENT ON COLUMN db_logins.held_until IS 'Taking its proposals failed, or many of them were refused: no more are taken before this time.';

-- Proposals that wait for a worker, and those that became no action of their own:
-- refused, or the same as an action that is there. A proposal that became an
-- action is deleted in that transaction, and has the id of the action. It has no
-- foreign keys, for the reason that actions have none; logins are never deleted.
CREATE TABLE proposals (
    tenant_id    uuid        NOT NULL,
    proposal_id  uuid        NOT NULL,
    login_id     uuid        NOT NULL,
    proposal_no  bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    body         text        NOT NULL,
    bytes        integer     NOT NULL,
    proposed_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    answered_at  timestamptz,
    action_id    uuid,
    problem      jsonb,
    CONSTRAINT proposals_pkey PRIMARY KEY (tenant_id, proposal_id),
    CONSTRAINT proposals_answer_check CHECK ((answered_at IS NULL) = (action_id IS NULL AND problem IS NULL))
) WITH (
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0
);
-- What waits, in the order in which a login proposed it.
CREATE INDEX proposals_waiting ON proposals (login_id, proposal_no) WHERE answered_at IS NULL;
CREATE INDEX proposals_answered ON proposals (tenant_id, proposal_id) WHERE answered_at IS NOT NULL;
CREATE INDEX proposals_answered_login ON proposals (login_id, proposal_no) WHERE answered_at IS NOT NULL;
COMMENT ON COLUMN proposals.proposal_id IS 'UUIDv7, and the id of the action that it becomes.';
COMMENT ON COLUMN proposals.body IS 'The envelope as JSON text. As jsonb, a number of a few bytes may have 131,072 digits, and whoever reads it gets all of them.';
COMMENT ON COLUMN proposals.bytes IS 'Size of body in bytes.';
COMMENT ON COLUMN proposals.action_id IS 'Action that was there already, with the same external_id and content.';
COMMENT ON COLUMN proposals.problem IS 'Why it was refused: kind, detail, and errors with pointer, rule and message.';

CREATE SCHEMA countersign AUTHORIZATION countersign_owner;
GRANT USAGE ON SCHEMA countersign TO PUBLIC;

-- propose_many proposes envelopes in the caller's transaction, as
-- countersign.propose does one, and returns their ids in the same order. It runs
-- as the owner, who may insert proposals; the caller may not. session_user is the
-- login, whatever role the caller has set.
-- +goose StatementBegin
CREATE FUNCTION countersign.propose_many(envelopes jsonb[]) RETURNS uuid[]
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    most    constant integer := 10000;
    n       constant integer := coalesce(cardinality(envelopes), 0);
    bound   db_logins;
    texts   text[];
    bad     text;
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
    -- A login of triage proposes what its own table says, where every value has an
    -- origin that its place allows, and nothing else. Whoever migrates the database is
    -- a member of all roles.
    IF pg_has_role(session_user, 'countersign_triage', 'MEMBER') AND NOT pg_has_role(session_user, 'countersign_owner', 'MEMBER') AND EXISTS (
        SELECT 1 FROM unnest(envelopes) AS e (body)
        WHERE NOT EXISTS (
            SELECT 1 FROM triage_proposals t
            WHERE t.tenant_id = bound.tenant_id AND t.external_id = e.body ->> 'external_id' AND t.envelope = e.body AND t.proposal_id IS NULL
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
            WHEN e.body IS NULL OR jsonb_typeof(e.body) <> 'object' THEN format('envelope %s is no JSON object', e.at)
            WHEN octet_length(e.text) > 262144 THEN format('envelope %s has more than 262144 bytes', e.at)
            WHEN e.body ? 'action_id' THEN format('envelope %s has an action_id; leave it out, since propose returns it', e.at)
        END, '; '),
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
    INTO bad, total, texts, ids
    FROM (
        SELECT u.body, u.body::text AS text, u.at, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS us
        FROM unnest(envelopes) WITH ORDINALITY AS u (body, at)
        ORDER BY u.at
    ) AS e;
    IF bad IS NOT NULL THEN
        RAISE EXCEPTION '%', left(bad, 500) USING ERRCODE = 'invalid_parameter_value';
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
        RAISE EXCEPTION 'too many proposals of the database login % wait: % with % bytes', session_user, waiting, waiting_bytes
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

-- propose proposes an envelope in the caller's transaction, and returns the id of
-- the proposal, which is that of the action that it becomes. If the transaction is
-- rolled back, nothing was proposed.
CREATE FUNCTION countersign.propose(envelope jsonb) RETURNS uuid
    LANGUAGE sql VOLATILE
AS $$ SELECT (countersign.propose_many(ARRAY[envelope]))[1] $$;

-- proposal_status returns what became of a proposal of the calling login: waiting,
-- accepted (action_id is the action, and phase says where it stands), duplicate (of
-- the action action_id) or refused (problem says why). It returns no row for
-- proposals of other logins, and for those that retention has deleted.
CREATE FUNCTION countersign.proposal_status(proposal uuid)
    RETURNS TABLE (state text, action_id uuid, phase text, problem jsonb)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT
        CASE WHEN p.answered_at IS NULL THEN 'waiting' WHEN p.problem IS NOT NULL THEN 'refused' ELSE 'duplicate' END,
        p.action_id, NULL::text, p.problem
    FROM db_logins l
    JOIN proposals p ON p.tenant_id = l.tenant_id AND p.login_id = l.login_id AND p.proposal_id = proposal
    WHERE l.login = session_user
    UNION ALL
    SELECT 'accepted', e.action_id, e.phase, NULL::jsonb
    FROM db_logins l
    JOIN envelopes e ON e.tenant_id = l.tenant_id AND e.proposed_by = l.login_id AND e.action_id = proposal
    WHERE l.login = session_user
$$;

-- +goose StatementBegin
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['db_logins', 'proposals'] LOOP
        EXECUTE format('ALTER TABLE %I OWNER TO countersign_owner', t);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_api USING (tenant_id = (SELECT current_tenant())) WITH CHECK (tenant_id = (SELECT current_tenant()))', t || '_api', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_worker USING (true) WITH CHECK (true)', t || '_worker', t);
        -- The functions run as the owner, to whom FORCE applies.
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_owner USING (true) WITH CHECK (true)', t || '_owner', t);
    END LOOP;
    -- proposal_status reads the view envelopes with the rights of the owner.
    FOREACH t IN ARRAY ARRAY['decisions', 'approvals', 'buckets'] LOOP
        EXECUTE format('CREATE POLICY %I ON %I FOR SELECT TO countersign_owner USING (true)', t || '_owner_status', t);
    END LOOP;
END
$$;
-- +goose StatementEnd

ALTER FUNCTION countersign.propose_many(jsonb[]) OWNER TO countersign_owner;
ALTER FUNCTION countersign.propose(jsonb) OWNER TO countersign_owner;
ALTER FUNCTION countersign.proposal_status(uuid) OWNER TO countersign_owner;
-- Everybody may call these; they refuse a login that nobody has bound.
GRANT EXECUTE ON FUNCTION countersign.propose_many(jsonb[]), countersign.propose(jsonb), countersign.proposal_status(uuid) TO PUBLIC;

GRANT SELECT ON db_logins, proposals TO countersign_api, countersign_worker;

-- proposers has everybody whom actions name as who proposed them: a token, a login
-- of the database, or a person who showed none.
CREATE VIEW proposers WITH (security_invoker = true) AS
SELECT t.tenant_id, t.token_id AS proposer_id, t.name, t.operator_id FROM api_tokens t
UNION ALL
SELECT l.tenant_id, l.login_id, 'login ' || l.login, l.operator_id FROM db_logins l
UNION ALL
SELECT o.tenant_id, o.operator_id, o.name, o.operator_id FROM operators o;
ALTER VIEW proposers OWNER TO countersign_owner;
GRANT SELECT ON proposers TO countersign_api;
GRANT UPDATE (held_until, waiting, waiting_bytes, counted_at) ON db_logins TO countersign_worker;
GRANT DELETE, UPDATE (answered_at, action_id, problem) ON proposals TO countersign_worker;
