-- +goose Up

-- Triage: the mail that its process reads, what it understood, and what it
-- proposed. countersign_triage has these tables and countersign.propose, and
-- nothing else. Text of mails stands in these tables alone.

-- triage_tenant returns the tenant of the login that is connected, as
-- countersign.propose takes it; NULL for a login that nobody has bound, so that
-- the policies match no row. No setting of the session can change it.
CREATE FUNCTION triage_tenant() RETURNS uuid
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$ SELECT l.tenant_id FROM db_logins l WHERE l.login = session_user AND l.unbound_at IS NULL $$;

-- The mail accounts that are read, as people set them up over the API.
CREATE TABLE triage_accounts (
    tenant_id    uuid        NOT NULL CONSTRAINT triage_accounts_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    account_id   uuid        NOT NULL,
    name         text        NOT NULL CONSTRAINT triage_accounts_name_check CHECK (name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
    kind         text        NOT NULL CONSTRAINT triage_accounts_kind_check CHECK (kind IN ('imap', 'maildir', 'mbox', 'eml', 'mcp')),
    connection   jsonb       NOT NULL DEFAULT '{}',
    settings     jsonb       NOT NULL DEFAULT '{}',
    proposals    jsonb       NOT NULL DEFAULT '{}',
    texts        jsonb       NOT NULL DEFAULT '{}',
    secret_from  text        CONSTRAINT triage_accounts_secret_from_check CHECK (secret_from ~ '^(env:COUNTERSIGN_TRIAGE_SECRET_[A-Z0-9_]{1,60}|file:/.+)$' AND length(secret_from) <= 1024),
    secret       bytea,
    enabled      boolean     NOT NULL DEFAULT true,
    every_seconds integer    NOT NULL DEFAULT 60 CONSTRAINT triage_accounts_every_check CHECK (every_seconds BETWEEN 5 AND 86400),
    backfill_days integer    NOT NULL DEFAULT 30 CONSTRAINT triage_accounts_backfill_check CHECK (backfill_days BETWEEN 0 AND 36500),
    version      bigint      NOT NULL DEFAULT 1,
    created_at   timestamptz NOT NULL DEFAULT now(),
    updated_at   timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT triage_accounts_pkey PRIMARY KEY (tenant_id, account_id),
    CONSTRAINT triage_accounts_secret_check CHECK (secret IS NULL OR secret_from IS NULL)
);
CREATE UNIQUE INDEX triage_accounts_name_key ON triage_accounts (tenant_id, name);
COMMENT ON COLUMN triage_accounts.connection IS 'Where the account is: host, port, user and auth, or url or command, server and names of an MCP server, or path; folders to read; trusted_host, whose Authentication-Results are believed.';
COMMENT ON COLUMN triage_accounts.settings IS 'What decisions depend on (decide.Settings).';
COMMENT ON COLUMN triage_accounts.proposals IS 'What proposals take from the configuration (plan.Config).';
COMMENT ON COLUMN triage_accounts.secret_from IS 'Where the triage process finds the password for reading: a variable or a file. secret is the password itself, encrypted with the key of triage. Neither is a credential of a source.';
COMMENT ON COLUMN triage_accounts.backfill_days IS 'How far back mail is read that was there before the account; 0 is none.';

-- When an account is read, and by whom. Triage makes and claims these rows; the
-- API asks for a run.
CREATE TABLE triage_schedules (
    tenant_id    uuid        NOT NULL,
    account_id   uuid        NOT NULL,
    next_run_at  timestamptz NOT NULL DEFAULT now(),
    asked_at     timestamptz,
    holder       uuid,
    lease_until  timestamptz,
    last_run_id  uuid,
    last_started_at timestamptz,
    last_ended_at timestamptz,
    last_read_at timestamptz,
    last_error   text,
    failures     integer     NOT NULL DEFAULT 0,
    quota        jsonb       NOT NULL DEFAULT '{}',
    models       jsonb       NOT NULL DEFAULT '[]',
    model_refused text       NOT NULL DEFAULT '',
    model_refused_at timestamptz,
    corrections_at timestamptz NOT NULL DEFAULT '-infinity',
    CONSTRAINT triage_schedules_pkey PRIMARY KEY (tenant_id, account_id),
    CONSTRAINT triage_schedules_account_fkey FOREIGN KEY (tenant_id, account_id) REFERENCES triage_accounts (tenant_id, account_id) ON DELETE CASCADE
);
COMMENT ON COLUMN triage_schedules.quota IS 'What the readers of the account may still take of the limits of its provider (quota.State).';
COMMENT ON COLUMN triage_schedules.holder IS 'The run that reads the account now; every commit of a run requires it, so that one run at a time writes. lease_until is when another may take over.';
COMMENT ON COLUMN triage_schedules.last_read_at IS 'When all folders were last looked at without an error, also within a run that goes on.';
COMMENT ON COLUMN triage_schedules.models IS 'What the process that read the account last knew of its model servers (engine.ModelState), for people.';
COMMENT ON COLUMN triage_schedules.model_refused IS 'The last server or model that was refused because it is not local, and why; model_refused_at is when. It stays until the next one.';
COMMENT ON COLUMN triage_schedules.corrections_at IS 'Until when corrections had messages of their senders decided again.';

CREATE TABLE triage_runs (
    tenant_id    uuid        NOT NULL,
    run_id       uuid        NOT NULL,
    account_id   uuid        NOT NULL,
    kind         text        NOT NULL CONSTRAINT triage_runs_kind_check CHECK (kind IN ('changes', 'backfill', 'asked')),
    started_at   timestamptz NOT NULL DEFAULT now(),
    ended_at     timestamptz,
    error        text,
    read         integer     NOT NULL DEFAULT 0,
    decided      integer     NOT NULL DEFAULT 0,
    proposed     integer     NOT NULL DEFAULT 0,
    skipped      integer     NOT NULL DEFAULT 0,
    CONSTRAINT triage_runs_pkey PRIMARY KEY (tenant_id, run_id),
    CONSTRAINT triage_runs_account_fkey FOREIGN KEY (tenant_id, account_id) REFERENCES triage_accounts (tenant_id, account_id) ON DELETE CASCADE
);
CREATE INDEX triage_runs_account_idx ON triage_runs (tenant_id, account_id, started_at DESC);

-- How far each folder was read. The cursors are the reader's.
CREATE TABLE triage_folders (
    tenant_id    uuid        NOT NULL,
    account_id   uuid        NOT NULL,
    folder       text        NOT NULL,
    use          text        NOT NULL DEFAULT '',
    cursor       text        NOT NULL DEFAULT '',
    older        text        NOT NULL DEFAULT '',
    older_done_at timestamptz,
    read_at      timestamptz,
    CONSTRAINT triage_folders_pkey PRIMARY KEY (tenant_id, account_id, folder),
    CONSTRAINT triage_folders_account_fkey FOREIGN KEY (tenant_id, account_id) REFERENCES triage_accounts (tenant_id, account_id) ON DELETE CASCADE
);
COMMENT ON COLUMN triage_folders.older IS 'How far backfill went, newest first; older_done_at is when it was done.';

-- A message, whatever copies of it lie where. Its identity is a digest over what
-- its sender wrote (message.Identity), never its Message-ID alone.
CREATE TABLE triage_messages (
    tenant_id    uuid        NOT NULL,
    message_id   uuid        NOT NULL,
    account_id   uuid        NOT NULL,
    identity     bytea       NOT NULL CONSTRAINT triage_messages_identity_check CHECK (length(identity) = 32),
    header_id    text        NOT NULL DEFAULT '',
    refs         text[]      NOT NULL DEFAULT '{}',
    thread_id    uuid        NOT NULL,
    thread_subject text      NOT NULL DEFAULT '',
    participants text[]      NOT NULL DEFAULT '{}',
    outgoing     boolean     NOT NULL,
    automated    boolean     NOT NULL DEFAULT false,
    awaits       boolean     NOT NULL DEFAULT false,
    sender       text        NOT NULL DEFAULT '',
    sender_name  text        NOT NULL DEFAULT '',
    list         text        NOT NULL DEFAULT '',
    subject      text        NOT NULL DEFAULT '',
    body         text        NOT NULL DEFAULT '',
    sent_at      timestamptz,
    received_at  timestamptz NOT NULL,
    size         bigint      NOT NULL,
    seen_at      timestamptz NOT NULL DEFAULT now(),
    left_at      timestamptz,
    touched_at   timestamptz,
    undone       text[]      NOT NULL DEFAULT '{}',
    CONSTRAINT triage_messages_pkey PRIMARY KEY (tenant_id, message_id),
    CONSTRAINT triage_messages_account_fkey FOREIGN KEY (tenant_id, account_id) REFERENCES triage_accounts (tenant_id, account_id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX triage_messages_identity_key ON triage_messages (tenant_id, account_id, identity);
CREATE INDEX triage_messages_header_idx ON triage_messages (tenant_id, account_id, header_id) WHERE header_id <> '';
CREATE INDEX triage_messages_thread_idx ON triage_messages (tenant_id, thread_id, received_at DESC);
CREATE INDEX triage_messages_awaits_idx ON triage_messages (tenant_id, thread_id) WHERE awaits;
CREATE INDEX triage_messages_received_idx ON triage_messages (tenant_id, account_id, received_at DESC, message_id DESC);
-- After the one above, to which the planner prefers it while there are no
-- statistics, since both seem to find one row in the order that is asked for.
CREATE INDEX triage_messages_subject_idx ON triage_messages (tenant_id, account_id, thread_subject, received_at) WHERE thread_subject <> '';
COMMENT ON COLUMN triage_messages.header_id IS 'Message-ID, which its sender chose: it finds threads and never suppresses a message.';
COMMENT ON COLUMN triage_messages.body IS 'The text that was judged, without quotes and signature, at most 64 kB. The original stays in the mailbox.';
COMMENT ON COLUMN triage_messages.automated IS 'A machine sent it, so that it answers nothing that the owner waits for.';
COMMENT ON COLUMN triage_messages.awaits IS 'The owner wrote it, asks something in it, and nobody has answered in the thread since.';
COMMENT ON COLUMN triage_messages.left_at IS 'When it was seen that the message lies in no folder any more but those to which triage has messages moved; NULL if it lies in another.';
COMMENT ON COLUMN triage_messages.touched_at IS 'When the owner was seen to have moved or flagged the message. undone are the actions of triage that were taken back or refused.';

-- Which messages name which. An index over refs would not be used: its operators
-- may show values that row-level security hides, as far as PostgreSQL knows.
CREATE TABLE triage_refs (
    tenant_id    uuid        NOT NULL,
    account_id   uuid        NOT NULL,
    ref          text        NOT NULL,
    outgoing     boolean     NOT NULL,
    message_id   uuid        NOT NULL,
    CONSTRAINT triage_refs_pkey PRIMARY KEY (tenant_id, account_id, ref, outgoing, message_id),
    CONSTRAINT triage_refs_message_fkey FOREIGN KEY (tenant_id, message_id) REFERENCES triage_messages (tenant_id, message_id) ON DELETE CASCADE
);
CREATE INDEX triage_refs_message_idx ON triage_refs (tenant_id, message_id);

CREATE TABLE triage_locations (
    tenant_id    uuid        NOT NULL,
    account_id   uuid        NOT NULL,
    folder       text        NOT NULL,
    key          text        NOT NULL,
    message_id   uuid        NOT NULL,
    flags        text[]      NOT NULL DEFAULT '{}',
    CONSTRAINT triage_locations_pkey PRIMARY KEY (tenant_id, account_id, folder, key),
    CONSTRAINT triage_locations_message_fkey FOREIGN KEY (tenant_id, message_id) REFERENCES triage_messages (tenant_id, message_id) ON DELETE CASCADE
);
CREATE INDEX triage_locations_message_idx ON triage_locations (tenant_id, message_id);

-- What was decided about a message; one row each, of messages that came in.
CREATE TABLE triage_decisions (
    tenant_id    uuid        NOT NULL,
    message_id   uuid        NOT NULL,
    account_id   uuid        NOT NULL,
    run_id       uuid        NOT NULL,
    decided_at   timestamptz NOT NULL DEFAULT now(),
    act          text        NOT NULL,
    category     text        NOT NULL,
    priority     text        NOT NULL,
    bucket       text        NOT NULL,
    cohort       text        NOT NULL,
    level        smallint    NOT NULL,
    confidence   double precision NOT NULL,
    question     boolean     NOT NULL,
    decision     jsonb       NOT NULL,
    signals      jsonb       NOT NULL,
    prediction   jsonb       NOT NULL,
    features     bytea,
    notes        jsonb       NOT NULL DEFAULT '[]',
    skipped      jsonb       NOT NULL DEFAULT '[]',
    model        text        NOT NULL,
    tier         text        NOT NULL DEFAULT 'embedded' CONSTRAINT triage_decisions_tier_check CHECK (tier IN ('embedded', 't1', 't2a', 't2b')),
    prompt       text        NOT NULL DEFAULT '',
    degraded     text        NOT NULL DEFAULT '',
    answers      jsonb       NOT NULL DEFAULT '[]',
    wanted       text[]      NOT NULL DEFAULT '{}',
    wanted_at    timestamptz,
    withheld     boolean     NOT NULL DEFAULT false,
    received_at  timestamptz NOT NULL DEFAULT now(),
    reason       text        NOT NULL DEFAULT 'new' CONSTRAINT triage_decisions_reason_check CHECK (reason IN ('new', 'answered', 'asked', 'brought_back', 'corrected')),
    again        text        CONSTRAINT triage_decisions_again_check CHECK (again IN ('answered', 'brought_back', 'corrected')),
    CONSTRAINT triage_decisions_pkey PRIMARY KEY (tenant_id, message_id),
    CONSTRAINT triage_decisions_message_fkey FOREIGN KEY (tenant_id, message_id) REFERENCES triage_messages (tenant_id, message_id) ON DELETE CASCADE
);
CREATE INDEX triage_decisions_bucket_idx ON triage_decisions (tenant_id, account_id, bucket);
CREATE INDEX triage_decisions_again_idx ON triage_decisions (tenant_id, account_id, message_id) WHERE again IS NOT NULL;
-- In the order in which models are asked.
CREATE INDEX triage_decisions_wanted_idx ON triage_decisions (tenant_id, account_id, received_at DESC) WHERE wanted_at IS NOT NULL;
COMMENT ON COLUMN triage_decisions.tier IS 'The highest tier that the decision rests on; model and prompt are those of that tier.';
COMMENT ON COLUMN triage_decisions.degraded IS 'The tiers that were wanted and that the decision does without, each with why; empty for none.';
COMMENT ON COLUMN triage_decisions.answers IS 'What models answered about the message (cascade.Reply): codes and confidences, no text.';
COMMENT ON COLUMN triage_decisions.wanted IS 'The tiers that are still to be asked; wanted_at is since when, NULL for none. withheld says that nothing is proposed until then.';
COMMENT ON COLUMN triage_decisions.received_at IS 'When the message was received: the newest are asked about first.';
COMMENT ON COLUMN triage_decisions.reason IS 'Why it was decided: the message was new; somebody answered what its owner waited for; a model was asked, or could not be; its owner brought it back, or corrected what was decided about its sender. again is the reason for which it is to be decided again.';
COMMENT ON COLUMN triage_decisions.notes IS 'What reading took away from the text, and warnings; skipped are actions that were wanted and not proposed, with the reason.';

-- What is known of an address or a list, from both directions of mail.
CREATE TABLE triage_senders (
    tenant_id    uuid        NOT NULL,
    account_id   uuid        NOT NULL,
    address      text        NOT NULL,
    name         text        NOT NULL DEFAULT '',
    first_seen   timestamptz NOT NULL,
    last_seen    timestamptz NOT NULL,
    received     integer     NOT NULL DEFAULT 0,
    sent         integer     NOT NULL DEFAULT 0,
    replied      integer     NOT NULL DEFAULT 0,
    accepted     integer     NOT NULL DEFAULT 0,
    refused      integer     NOT NULL DEFAULT 0,
    CONSTRAINT triage_senders_pkey PRIMARY KEY (tenant_id, account_id, address),
    CONSTRAINT triage_senders_account_fkey FOREIGN KEY (tenant_id, account_id) REFERENCES triage_accounts (tenant_id, account_id) ON DELETE CASCADE
);
COMMENT ON COLUMN triage_senders.address IS 'An address in lower case, or list: and the id of a list.';
COMMENT ON COLUMN triage_senders.accepted IS 'How many proposals about their messages a person approved; refused is how many were denied or taken back.';

-- Corrections of people, replayed in their order on top of the embedded models.
CREATE TABLE triage_corrections (
    tenant_id    uuid        NOT NULL,
    correction_no bigint     NOT NULL GENERATED ALWAYS AS IDENTITY,
    account_id   uuid        NOT NULL,
    message_id   uuid        NOT NULL,
    head         text        NOT NULL CONSTRAINT triage_corrections_head_check CHECK (head IN ('act', 'category', 'priority', 'unwanted')),
    label        text        NOT NULL CONSTRAINT triage_corrections_label_check CHECK (label ~ '^[a-z_]{1,30}$'),
    features     bytea       NOT NULL,
    made_by      text        NOT NULL,
    made_at      timestamptz NOT NULL DEFAULT now(),
    retracted_at timestamptz,
    CONSTRAINT triage_corrections_pkey PRIMARY KEY (tenant_id, correction_no),
    CONSTRAINT triage_corrections_message_fkey FOREIGN KEY (tenant_id, message_id) REFERENCES triage_messages (tenant_id, message_id) ON DELETE CASCADE
);
CREATE INDEX triage_corrections_account_idx ON triage_corrections (tenant_id, account_id, correction_no DESC) WHERE retracted_at IS NULL;

-- Texts that a language model writes: asked for by people, or by triage where the
-- account says so. text holds what was written, and words of mail with it.
CREATE TABLE triage_texts (
    tenant_id    uuid        NOT NULL,
    text_no      bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    account_id   uuid        NOT NULL,
    message_id   uuid        NOT NULL,
    kind         text        NOT NULL CONSTRAINT triage_texts_kind_check CHECK (kind IN ('summary', 'draft')),
    note         text        NOT NULL DEFAULT '' CONSTRAINT triage_texts_note_check CHECK (length(note) <= 1000),
    asked_by     text        NOT NULL,
    asked_at     timestamptz NOT NULL DEFAULT now(),
    attempts     integer     NOT NULL DEFAULT 0,
    ended_at     timestamptz,
    text         text        NOT NULL DEFAULT '',
    problem      text        NOT NULL DEFAULT '',
    model        text        NOT NULL DEFAULT '',
    prompt       text        NOT NULL DEFAULT '',
    external_id  text,
    CONSTRAINT triage_texts_pkey PRIMARY KEY (tenant_id, text_no),
    CONSTRAINT triage_texts_message_fkey FOREIGN KEY (tenant_id, message_id) REFERENCES triage_messages (tenant_id, message_id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX triage_texts_waiting_key ON triage_texts (tenant_id, message_id, kind) WHERE ended_at IS NULL;
CREATE INDEX triage_texts_message_idx ON triage_texts (tenant_id, message_id);
CREATE INDEX triage_texts_due_idx ON triage_texts (tenant_id, account_id, text_no) WHERE ended_at IS NULL;
COMMENT ON COLUMN triage_texts.external_id IS 'The proposal that a draft led to.';

-- triage_args_allowed reports whether every value in the arguments of a call is a
-- text that stands among the fields, at its place, with an origin from which that
-- place takes values. The places are those of plan.Rules.
-- +goose StatementBegin
CREATE FUNCTION triage_args_allowed(tool text, args jsonb, fields jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE SET search_path = public, pg_temp
AS $$
    WITH RECURSIVE nodes AS (
        SELECT '' AS pointer, args AS value
        UNION ALL
        SELECT n.pointer || '/' || m.name, m.value
        FROM nodes n
        CROSS JOIN LATERAL (
            SELECT replace(replace(o.key, '~', '~0'), '/', '~1') AS name, o.value
            FROM jsonb_each(CASE WHEN jsonb_typeof(n.value) = 'object' THEN n.value ELSE '{}' END) o
            UNION ALL
            SELECT (i.at - 1)::text, i.value
            FROM jsonb_array_elements(CASE WHEN jsonb_typeof(n.value) = 'array' THEN n.value ELSE '[]' END) WITH ORDINALITY i (value, at)
        ) m
    ), leaves AS (
        SELECT n.pointer, n.value FROM nodes n WHERE n.value IN ('{}', '[]') OR jsonb_typeof(n.value) NOT IN ('object', 'array')
    ), named AS (
        SELECT f.value ->> 'pointer' AS pointer, f.value -> 'value' AS value, f.value ->> 'origin' AS origin,
            regexp_replace(f.value ->> 'pointer', '/(0|[1-9][0-9]*)$', '/*') AS place
        FROM jsonb_array_elements(fields) f
    ), allowed (tools, place, origins) AS (VALUES
        ('{message.label,message.flag,message.archive,message.move,message.draft}'::text[], '/account', '{config}'::text[]),
        ('{message.label,message.flag,message.archive,message.move}', '/message/folder', '{header}'),
        ('{message.label,message.flag,message.archive,message.move}', '/message/key', '{header}'),
        ('{message.label,message.flag,message.archive,message.move}', '/message/message_id', '{header}'),
        ('{message.label,message.flag,message.archive,message.move}', '/message/identity', '{header}'),
        ('{message.label,message.flag,message.archive,message.move}', '/expected/folder', '{header}'),
        ('{message.label,message.flag,message.archive,message.move}', '/expected/flags/*', '{header}'),
        ('{message.label,message.archive}', '/labels/add/*', '{header,config,template}'),
        ('{message.label,message.archive}', '/labels/remove/*', '{header,config,template}'),
        ('{message.flag,message.label}', '/flags/add/*', '{enum}'),
        ('{message.flag,message.label}', '/flags/remove/*', '{enum}'),
        ('{message.move}', '/folder', '{config}'),
        ('{message.draft}', '/to/*', '{header,config,template}'),
        ('{message.draft}', '/cc/*', '{header,config,template}'),
        ('{message.draft}', '/subject', '{header,config,template}'),
        ('{message.draft}', '/in_reply_to', '{header}'),
        ('{message.draft}', '/references/*', '{header}'),
        ('{message.draft}', '/text', '{header,config,template,enum,model_text}')
    )
    SELECT jsonb_typeof(args) = 'object' AND jsonb_typeof(fields) = 'array'
        AND (SELECT count(1) = count(DISTINCT pointer) AND count(1) > 0 FROM named)
        AND NOT EXISTS (
            SELECT 1 FROM leaves l FULL JOIN named f ON f.pointer = l.pointer
            WHERE f.pointer IS NULL OR l.pointer IS NULL OR jsonb_typeof(l.value) <> 'string' OR f.value IS DISTINCT FROM l.value
        )
        AND NOT EXISTS (
            SELECT 1 FROM named f
            WHERE NOT EXISTS (SELECT 1 FROM allowed a WHERE tool = ANY (a.tools) AND a.place = f.place AND f.origin = ANY (a.origins))
        )
$$;
-- +goose StatementEnd

-- What was proposed about a message, each at most once whatever the run. A login
-- of triage proposes nothing but these envelopes (countersign.propose_many).
CREATE TABLE triage_proposals (
    tenant_id    uuid        NOT NULL,
    external_id  text        NOT NULL,
    account_id   uuid        NOT NULL,
    message_id   uuid        NOT NULL,
    action       text        NOT NULL,
    parts        jsonb       NOT NULL DEFAULT '[]' CONSTRAINT triage_proposals_parts_check CHECK (jsonb_typeof(parts) = 'array'),
    fields       jsonb       NOT NULL,
    envelope     jsonb       NOT NULL,
    proposal_id  uuid,
    proposed_at  timestamptz NOT NULL DEFAULT now(),
    outcome      text        CONSTRAINT triage_proposals_outcome_check CHECK (outcome IN ('approved', 'denied', 'undone', 'reverted')),
    outcome_due  boolean     NOT NULL DEFAULT false,
    CONSTRAINT triage_proposals_pkey PRIMARY KEY (tenant_id, external_id),
    CONSTRAINT triage_proposals_message_fkey FOREIGN KEY (tenant_id, message_id) REFERENCES triage_messages (tenant_id, message_id) ON DELETE CASCADE,
    CONSTRAINT triage_proposals_envelope_check CHECK (
        envelope ->> 'type' = 'mcp.exec'
        AND envelope ->> 'external_id' = external_id AND external_id ~ '^triage:[0-9a-f]{64}$'
        AND envelope - '{type,external_id,tool,args,risk,approval}'::text[] = '{}'
        AND coalesce(envelope ->> 'approval', 'required') = 'required'
        AND (envelope -> 'tool') - '{name,source}'::text[] = '{}'
    ),
    CONSTRAINT triage_proposals_origin_check CHECK (triage_args_allowed(envelope #>> '{tool,name}', envelope -> 'args', fields))
);
CREATE INDEX triage_proposals_message_idx ON triage_proposals (tenant_id, message_id);
CREATE INDEX triage_proposals_outcome_idx ON triage_proposals (tenant_id, account_id) WHERE outcome_due;
COMMENT ON COLUMN triage_proposals.fields IS 'Every value of the arguments with its pointer and where it comes from: header, config, template, enum or model_text.';
COMMENT ON COLUMN triage_proposals.parts IS 'All that the call does: actions with what they change the message to. action is the first of them.';
COMMENT ON COLUMN triage_proposals.outcome IS 'What a person last did to the action; triggers write it. outcome_due says that triage has not taken it into account.';
COMMENT ON COLUMN triage_proposals.proposal_id IS 'What countersign.propose returned, in the same transaction.';

-- +goose StatementBegin
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['triage_accounts', 'triage_schedules', 'triage_runs', 'triage_folders', 'triage_messages', 'triage_refs', 'triage_locations',
            'triage_decisions', 'triage_senders', 'triage_corrections', 'triage_proposals', 'triage_texts'] LOOP
        EXECUTE format('ALTER TABLE %I OWNER TO countersign_owner', t);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_api USING (tenant_id = (SELECT current_tenant())) WITH CHECK (tenant_id = (SELECT current_tenant()))', t || '_api', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_triage USING (tenant_id = (SELECT triage_tenant())) WITH CHECK (tenant_id = (SELECT triage_tenant()))', t || '_triage', t);
        EXECUTE format('GRANT SELECT ON %I TO countersign_api, countersign_triage', t);
    END LOOP;
    -- countersign.propose_many compares what a login of triage proposes.
    CREATE POLICY triage_proposals_owner ON triage_proposals FOR SELECT TO countersign_owner USING (true);
    -- note_triage_outcome writes what people do to its actions.
    CREATE POLICY triage_proposals_owner_outcome ON triage_proposals FOR UPDATE TO countersign_owner USING (true);
END
$$;
-- +goose StatementEnd

-- People set up accounts, ask for runs and correct; triage does the rest.
GRANT INSERT, UPDATE, DELETE ON triage_accounts TO countersign_api;
GRANT INSERT, UPDATE (asked_at) ON triage_schedules TO countersign_api;
GRANT INSERT, UPDATE (retracted_at) ON triage_corrections TO countersign_api;
GRANT INSERT (tenant_id, account_id, message_id, kind, note, asked_by) ON triage_texts TO countersign_api;

GRANT INSERT, UPDATE ON triage_schedules, triage_runs, triage_folders, triage_senders TO countersign_triage;
GRANT INSERT, UPDATE, DELETE ON triage_messages, triage_locations, triage_decisions TO countersign_triage;
GRANT INSERT ON triage_refs TO countersign_triage;
GRANT INSERT (tenant_id, account_id, message_id, kind, asked_by), UPDATE (attempts, ended_at, text, problem, model, prompt, external_id) ON triage_texts TO countersign_triage;
GRANT INSERT, UPDATE (proposal_id, outcome_due) ON triage_proposals TO countersign_triage;

REVOKE EXECUTE ON FUNCTION triage_tenant(), triage_args_allowed(text, jsonb, jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION triage_tenant(), triage_args_allowed(text, jsonb, jsonb) TO countersign_triage;
ALTER FUNCTION triage_tenant() OWNER TO countersign_owner;
ALTER FUNCTION triage_args_allowed(text, jsonb, jsonb) OWNER TO countersign_owner;

-- note_triage_outcome tells triage what people do to the actions that it proposed,
-- since it sees no action: the word and what happened are the trigger's.
-- +goose StatementBegin
CREATE FUNCTION note_triage_outcome() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    acted uuid;
    word  text := TG_ARGV[0];
BEGIN
    IF word = 'reverted' THEN
        acted := split_part(NEW.external_id, ':', 2)::uuid;
    ELSE
        acted := NEW.action_id;
    END IF;
    UPDATE triage_proposals p
    SET outcome = word, outcome_due = true
    FROM actions a
    WHERE a.tenant_id = NEW.tenant_id AND a.action_id = acted AND a.external_id LIKE 'triage:%'
        AND p.tenant_id = a.tenant_id AND p.external_id = a.external_id;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER votes_triage_approved AFTER INSERT ON votes FOR EACH ROW WHEN (NEW.decision = 'grant') EXECUTE FUNCTION note_triage_outcome('approved');
CREATE TRIGGER votes_triage_denied AFTER INSERT ON votes FOR EACH ROW WHEN (NEW.decision = 'deny') EXECUTE FUNCTION note_triage_outcome('denied');
CREATE TRIGGER tool_executions_triage_undone AFTER INSERT ON tool_executions FOR EACH ROW WHEN (NEW.code = 'undone') EXECUTE FUNCTION note_triage_outcome('undone');
CREATE TRIGGER actions_triage_reverted AFTER INSERT ON actions FOR EACH ROW
    WHEN (NEW.external_id LIKE 'revert:%' AND NEW.external_id ~ '^revert:[0-9a-f-]{36}:') EXECUTE FUNCTION note_triage_outcome('reverted');

REVOKE EXECUTE ON FUNCTION note_triage_outcome() FROM PUBLIC;
ALTER FUNCTION note_triage_outcome() OWNER TO countersign_owner;
