-- +goose Up

-- The record: events, their checkpoints, the subscriptions that deliver them,
-- the notes of agents, and how long all of it is kept.

-- Events in the order in which they were committed, for event streams and for
-- the audit. One row covers a set of changes of one tenant.
CREATE TABLE events (
    event_id  bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    tenant_id uuid        NOT NULL,
    txid      xid8        NOT NULL DEFAULT pg_current_xact_id(),
    at        timestamptz NOT NULL DEFAULT now(),
    kind      text        NOT NULL,
    actor     text        NOT NULL,
    items     jsonb       NOT NULL,
    digests   bytea,
    CONSTRAINT events_pkey PRIMARY KEY (tenant_id, txid, event_id)
);
COMMENT ON COLUMN events.digests IS 'Digests of the rows that the items tell of: a byte that says which groups of columns, and then for each item, in order, 32 bytes for each of these groups, zeros for none. audit.Digests says what each covers. NULL if the items tell of no rows.';
-- Hashes cannot be compressed. What can be is compressed by LZ4 where the server
-- has it: that takes a third of the time.
ALTER TABLE events ALTER COLUMN digests SET STORAGE EXTERNAL;
-- +goose StatementBegin
DO $$
BEGIN
    ALTER TABLE events ALTER COLUMN items SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
    NULL;
END
$$;
-- +goose StatementEnd
COMMENT ON COLUMN events.actor IS 'Who did it, as envelope.Actor writes it: a name, and the ids of the operator and of the token. All columns that say who have this form.';
COMMENT ON COLUMN events.txid IS 'Readers order by (txid, event_id) and stop at the oldest transaction that is still open, so that an event of a slow commit is never skipped.';

-- The events that tell of an action what no row of its own does. Those that every
-- action has, proposed and settled, are not in it, so that submitting and settling
-- pay nothing for it; history.IndexedKinds has the same kinds.
CREATE INDEX events_of_actions ON events USING gin (jsonb_path_query_array(items, '$[*].action_id') jsonb_path_ops)
    WHERE kind IN ('returned_to_approval', 'expiring', 'escalated', 'undone', 'killed', 'replayed', 'discarded');

-- action_events returns what these events tell of one action of the current tenant,
-- the newest first, most at most. It runs as the owner: the operator of the index is
-- not leakproof, so that a role with row-level security could not use it.
-- +goose StatementBegin
CREATE FUNCTION action_events(action uuid, most bigint)
    RETURNS TABLE (at timestamptz, kind text, actor text, note text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH found AS MATERIALIZED (
        SELECT e.tenant_id, e.txid, e.event_id, e.at, e.kind, e.actor, e.items
        FROM events e
        WHERE e.kind IN ('returned_to_approval', 'expiring', 'escalated', 'undone', 'killed', 'replayed', 'discarded')
            AND jsonb_path_query_array(e.items, '$[*].action_id') @> jsonb_build_array(action::text)
    )
    SELECT f.at, f.kind, f.actor, coalesce(i.item ->> 'note', '')
    FROM found f
    CROSS JOIN LATERAL jsonb_array_elements(f.items) AS i (item)
    WHERE f.tenant_id = current_tenant() AND i.item ->> 'action_id' = action::text
    ORDER BY f.txid DESC, f.event_id DESC
    LIMIT most
$$;
-- +goose StatementEnd

-- Checkpoints: the events of each tenant are hashed in groups, and the hashes
-- form a chain. A checkpoint holds the position and the hash of every event
-- that it covers, so that verification detects, and names, each event that was
-- changed, removed or inserted.
CREATE TABLE checkpoints (
    tenant_id    uuid        NOT NULL,
    checkpoint_no      bigint      NOT NULL,
    version      integer     NOT NULL,
    from_txid    xid8        NOT NULL,
    from_event   bigint      NOT NULL,
    until_txid   xid8        NOT NULL,
    until_event  bigint      NOT NULL,
    oldest_at    timestamptz NOT NULL,
    newest_at    timestamptz NOT NULL,
    events       integer     NOT NULL CONSTRAINT checkpoints_events_check CHECK (events > 0),
    leaves       bytea       NOT NULL,
    prev_hash    bytea       NOT NULL,
    hash         bytea       NOT NULL,
    created_at    timestamptz NOT NULL,
    pruned_at    timestamptz,
    pruned_txid  xid8,
    pruned_event bigint,
    noted_at     timestamptz,
    CONSTRAINT checkpoints_pkey PRIMARY KEY (tenant_id, checkpoint_no),
    CONSTRAINT checkpoints_pruned_check CHECK ((pruned_at IS NULL) = (pruned_txid IS NULL) AND (pruned_at IS NULL) = (pruned_event IS NULL))
);
-- Hashes cannot be compressed.
ALTER TABLE checkpoints ALTER COLUMN leaves SET STORAGE EXTERNAL;
CREATE UNIQUE INDEX checkpoints_until_key ON checkpoints (tenant_id, until_txid, until_event);
CREATE INDEX checkpoints_kept ON checkpoints (tenant_id, checkpoint_no) WHERE pruned_at IS NULL;
CREATE INDEX checkpoints_pruned ON checkpoints (tenant_id, checkpoint_no) WHERE pruned_at IS NOT NULL;
CREATE INDEX checkpoints_noted ON checkpoints (tenant_id, checkpoint_no) WHERE noted_at IS NOT NULL;
COMMENT ON COLUMN checkpoints.version IS 'Version of the format that is hashed.';
COMMENT ON COLUMN checkpoints.from_txid IS 'from_txid and from_event are the position of the first event covered, until_txid and until_event that of the last. Every event after the previous checkpoint and up to this position belongs to this checkpoint.';
COMMENT ON COLUMN checkpoints.leaves IS 'For each event, in order of position: its position (two times 8 bytes) and its hash (32 bytes).';
COMMENT ON COLUMN checkpoints.prev_hash IS 'Hash of the previous checkpoint; zeros in the first.';
COMMENT ON COLUMN checkpoints.hash IS 'SHA-256 of all columns above, and created_at.';
COMMENT ON COLUMN checkpoints.pruned_at IS 'When retention deleted the events; pruned_txid and pruned_event are the position of the event that records the deletion. No hash covers these columns, so readers check that this event exists.';
COMMENT ON COLUMN checkpoints.noted_at IS 'When somebody first noted this checkpoint as the head of the chain, to keep its hash elsewhere. No hash covers it: it reminds people, and proves nothing.';

-- Subscriptions deliver events to external systems. Each delivery is an action
-- on the subscription's source.
CREATE TABLE subscriptions (
    tenant_id       uuid        NOT NULL CONSTRAINT subscriptions_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    subscription_id uuid        NOT NULL CONSTRAINT subscriptions_subscription_id_key UNIQUE,
    name            text        NOT NULL,
    source_id       text        NOT NULL,
    kinds           text[]      NOT NULL CONSTRAINT subscriptions_kinds_check CHECK (cardinality(kinds) BETWEEN 1 AND 50),
    tool            text        NOT NULL DEFAULT '*',
    min_risk        text        NOT NULL DEFAULT 'low' CONSTRAINT subscriptions_min_risk_check CHECK (min_risk IN ('low', 'medium', 'high')),
    channel         text,
    link            text,
    rate_bucket     text,
    signing_secret  bytea,
    enabled         boolean     NOT NULL DEFAULT true,
    disabled_reason text,
    cursor_txid     xid8        NOT NULL,
    cursor_event    bigint      NOT NULL,
    cursor_item     integer     NOT NULL DEFAULT 0,
    looked_at       timestamptz NOT NULL DEFAULT now(),
    held_until      timestamptz,
    version         bigint      NOT NULL DEFAULT 0,
    created_at      timestamptz NOT NULL DEFAULT now(),
    updated_at      timestamptz NOT NULL DEFAULT now(),
    updated_by      text        NOT NULL DEFAULT '',
    CONSTRAINT subscriptions_pkey PRIMARY KEY (tenant_id, name),
    CONSTRAINT subscriptions_id_key UNIQUE (tenant_id, subscription_id),
    CONSTRAINT subscriptions_name_check CHECK (name ~ '^[a-z0-9][a-z0-9_.-]{0,62}$'),
    CONSTRAINT subscriptions_source_id_fkey FOREIGN KEY (tenant_id, source_id) REFERENCES sources (tenant_id, source_id) ON DELETE CASCADE
);
CREATE INDEX subscriptions_source_idx ON subscriptions (tenant_id, source_id);
COMMENT ON COLUMN subscriptions.subscription_id IS 'Deliveries run under the automation countersign.subscription.<id>. A subscription that is deleted and created again under the same name gets a new id, so that it does not inherit policy.';
COMMENT ON COLUMN subscriptions.signing_secret IS 'Signing secret of the Slack app whose buttons act for the subscription, encrypted separately from the source''s credentials: the only secret that the API decrypts.';
COMMENT ON COLUMN subscriptions.disabled_reason IS 'Why it was disabled automatically; NULL if it was not.';
COMMENT ON COLUMN subscriptions.cursor_item IS 'Number of items of the event after the cursor that are already delivered.';
COMMENT ON COLUMN subscriptions.held_until IS 'Reading events failed; the next try is at this time.';
COMMENT ON COLUMN subscriptions.version IS 'The tenant''s config_version as of the last change that affects policy.';

-- Only changes that affect policy count as changes of configuration; the cursor
-- is updated all the time.
CREATE TRIGGER subscriptions_stamp_insert BEFORE INSERT ON subscriptions FOR EACH ROW EXECUTE FUNCTION stamp_policy_version();
CREATE TRIGGER subscriptions_stamp_update BEFORE UPDATE ON subscriptions FOR EACH ROW
    WHEN ((OLD.source_id, OLD.enabled) IS DISTINCT FROM (NEW.source_id, NEW.enabled))
    EXECUTE FUNCTION stamp_policy_version();
CREATE TRIGGER subscriptions_bump_insert AFTER INSERT ON subscriptions REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER subscriptions_bump_update AFTER UPDATE ON subscriptions FOR EACH ROW
    WHEN ((OLD.source_id, OLD.enabled) IS DISTINCT FROM (NEW.source_id, NEW.enabled))
    EXECUTE FUNCTION bump_config_version_row();
CREATE TRIGGER subscriptions_bump_delete AFTER DELETE ON subscriptions REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();

-- slack_subscription returns the subscription that a Slack button's request is
-- for. It runs before the tenant is known; the caller must then verify the
-- request's signature with the returned secret.
-- +goose StatementBegin
CREATE FUNCTION slack_subscription(wanted uuid)
    RETURNS TABLE (tenant_id uuid, name text, source_id text, signing_secret bytea)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT s.tenant_id, s.name, s.source_id, s.signing_secret
    FROM subscriptions s
    WHERE s.subscription_id = wanted AND s.enabled AND s.signing_secret IS NOT NULL
$$;
-- +goose StatementEnd

-- Slack messages that ask for an approval, until the message is updated to show
-- the decision. A button is accepted only if its message has a row here.
CREATE TABLE approval_messages (
    tenant_id       uuid        NOT NULL,
    subscription_id uuid        NOT NULL,
    action_id       uuid        NOT NULL,
    delivery_id     uuid        NOT NULL,
    CONSTRAINT approval_messages_pkey PRIMARY KEY (tenant_id, subscription_id, action_id, delivery_id),
    CONSTRAINT approval_messages_subscription_id_fkey FOREIGN KEY (tenant_id, subscription_id)
        REFERENCES subscriptions (tenant_id, subscription_id) ON DELETE CASCADE
);
CREATE INDEX approval_messages_delivery_idx ON approval_messages (tenant_id, subscription_id, delivery_id);
COMMENT ON COLUMN approval_messages.action_id IS 'Action that waits for approval.';
COMMENT ON COLUMN approval_messages.delivery_id IS 'Action that sends the message.';

-- Notes that agents created with the tool countersign.note.create.
CREATE TABLE notes (
    tenant_id  uuid        NOT NULL,
    note_id    uuid        NOT NULL,
    source_id  text        NOT NULL,
    key        text        NOT NULL,
    body       text        NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT notes_pkey PRIMARY KEY (tenant_id, note_id),
    CONSTRAINT notes_key_key UNIQUE (tenant_id, source_id, key)
);
COMMENT ON COLUMN notes.note_id IS 'UUIDv7, so that ids sort by time.';
COMMENT ON COLUMN notes.key IS 'Idempotency key of the call, so that several attempts of one action create one note.';

-- How long a tenant keeps its data. Without a row it is 90 days with the action
-- report.
CREATE TABLE retention (
    tenant_id  uuid        NOT NULL CONSTRAINT retention_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    kind       text        NOT NULL CONSTRAINT retention_kind_check CHECK (kind IN ('actions', 'events')),
    days       integer     NOT NULL CONSTRAINT retention_days_check CHECK (days BETWEEN 1 AND 9999),
    action     text        NOT NULL CONSTRAINT retention_action_check CHECK (action IN ('delete', 'report')),
    updated_at timestamptz NOT NULL DEFAULT now(),
    updated_by text        NOT NULL DEFAULT '',
    CONSTRAINT retention_pkey PRIMARY KEY (tenant_id, kind)
);
COMMENT ON COLUMN retention.kind IS 'actions: actions that ended, with their attempts. events: events that checkpoints cover.';

-- How many rows the daily check found to be older than a limit whose action is
-- report.
CREATE TABLE retention_checks (
    tenant_id  uuid        NOT NULL CONSTRAINT retention_checks_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    checked_at timestamptz NOT NULL,
    actions    bigint      NOT NULL,
    events     bigint      NOT NULL,
    CONSTRAINT retention_checks_pkey PRIMARY KEY (tenant_id)
);

-- prune_actions deletes those of the given actions that ended longer ago than
-- their tenant keeps them, with their attempts, and returns how many. No role
-- can delete actions in any other way.
-- +goose StatementBegin
CREATE FUNCTION prune_actions(tenants uuid[], actions uuid[]) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    pruned bigint;
BEGIN
    WITH chosen AS MATERIALIZED (
        SELECT e.tenant_id, e.action_id, r.days
        FROM unnest(prune_actions.tenants, prune_actions.actions) AS w (tenant_id, action_id)
        JOIN ended_actions e ON e.tenant_id = w.tenant_id AND e.action_id = w.action_id
        JOIN retention r ON r.tenant_id = w.tenant_id
        WHERE r.kind = 'actions' AND r.action = 'delete' AND e.ended_at < now() - make_interval(days => r.days)
    ), attempts AS (
        DELETE FROM tool_executions t
        USING chosen c
        WHERE t.tenant_id = c.tenant_id AND t.action_id = c.action_id
    ), gone AS (
        DELETE FROM actions a
        USING chosen c
        WHERE a.tenant_id = c.tenant_id AND a.action_id = c.action_id
        RETURNING a.tenant_id, a.action_id, c.days
    ), recorded AS (
        INSERT INTO events (tenant_id, kind, actor, items)
        SELECT g.tenant_id, 'pruned', 'retention', jsonb_agg(jsonb_build_object('action_id', g.action_id, 'code', 'retention', 'detail', jsonb_build_object('days', g.days)))
        FROM gone g
        GROUP BY g.tenant_id
    )
    SELECT count(1) INTO pruned FROM gone;
    RETURN pruned;
END
$$;
-- +goose StatementEnd

-- prune_events deletes the events of the checkpoints first_no to last_no, marks
-- the checkpoints as pruned, and records the deletion as an event. It returns
-- the number of events deleted: 0 if these are not the oldest checkpoints that
-- still have events, or if some of them are not old enough.
-- +goose StatementBegin
CREATE FUNCTION prune_events(tenant uuid, first_no bigint, last_no bigint) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    keep    integer;
    oldest  bigint;
    lower   record;
    upper   record;
    told    record;
    pruned  bigint;
BEGIN
    SELECT r.days INTO keep FROM retention r WHERE r.tenant_id = tenant AND r.kind = 'events' AND r.action = 'delete';
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    -- Of two concurrent calls the second waits here, and then finds the
    -- checkpoints pruned.
    PERFORM 1 FROM checkpoints s WHERE s.tenant_id = tenant AND s.checkpoint_no BETWEEN first_no AND last_no ORDER BY s.checkpoint_no FOR UPDATE;
    SELECT min(s.checkpoint_no) INTO oldest FROM checkpoints s WHERE s.tenant_id = tenant AND s.pruned_at IS NULL;
    IF oldest IS DISTINCT FROM first_no OR EXISTS (
        SELECT 1
        FROM checkpoints s
        WHERE s.tenant_id = tenant AND s.checkpoint_no BETWEEN first_no AND last_no AND s.newest_at >= now() - make_interval(days => keep)
    ) THEN
        RETURN 0;
    END IF;
    SELECT s.until_txid, s.until_event INTO upper FROM checkpoints s WHERE s.tenant_id = tenant AND s.checkpoint_no = last_no;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    SELECT '0'::xid8 AS until_txid, 0::bigint AS until_event INTO lower;
    IF first_no > 1 THEN
        SELECT s.until_txid, s.until_event INTO lower FROM checkpoints s WHERE s.tenant_id = tenant AND s.checkpoint_no = first_no - 1;
        IF NOT FOUND THEN
            RETURN 0;
        END IF;
    END IF;
    DELETE FROM events e
    WHERE e.tenant_id = tenant
        AND (e.txid, e.event_id) > (lower.until_txid, lower.until_event)
        AND (e.txid, e.event_id) <= (upper.until_txid, upper.until_event);
    GET DIAGNOSTICS pruned = ROW_COUNT;
    INSERT INTO events (tenant_id, kind, actor, items)
    VALUES (tenant, 'pruned', 'retention', jsonb_build_array(jsonb_build_object(
        'subject', 'events of the checkpoints ' || first_no || ' to ' || last_no || ' deleted',
        'detail', jsonb_build_object('from_checkpoint', first_no, 'until_checkpoint', last_no, 'events', pruned, 'days', keep))))
    RETURNING txid, event_id INTO told;
    UPDATE checkpoints s
    SET pruned_at = now(), pruned_txid = told.txid, pruned_event = told.event_id
    WHERE s.tenant_id = tenant AND s.checkpoint_no BETWEEN first_no AND last_no;
    RETURN pruned;
END
$$;
-- +goose StatementEnd

-- Row-level security: the same two policies for every table, and those that the
-- pruning functions need, which run as the owner.
-- +goose StatementBegin
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['events', 'checkpoints', 'subscriptions', 'approval_messages', 'notes', 'retention', 'retention_checks'] LOOP
        EXECUTE format('ALTER TABLE %I OWNER TO countersign_owner', t);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_api USING (tenant_id = (SELECT current_tenant())) WITH CHECK (tenant_id = (SELECT current_tenant()))', t || '_api', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_worker USING (true) WITH CHECK (true)', t || '_worker', t);
    END LOOP;
    FOREACH t IN ARRAY ARRAY['checkpoints', 'events', 'actions', 'tool_executions'] LOOP
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_owner USING (true) WITH CHECK (true)', t || '_owner_prune', t);
    END LOOP;
    FOREACH t IN ARRAY ARRAY['retention', 'outbox', 'dead_letters'] LOOP
        EXECUTE format('CREATE POLICY %I ON %I FOR SELECT TO countersign_owner USING (true)', t || '_owner_prune', t);
    END LOOP;
END
$$;
-- +goose StatementEnd
-- slack_subscription runs as the owner, to whom FORCE applies.
CREATE POLICY subscriptions_owner ON subscriptions FOR SELECT TO countersign_owner USING (true);

ALTER FUNCTION slack_subscription(uuid) OWNER TO countersign_owner;
ALTER FUNCTION action_events(uuid, bigint) OWNER TO countersign_owner;
ALTER FUNCTION prune_actions(uuid[], uuid[]) OWNER TO countersign_owner;
ALTER FUNCTION prune_events(uuid, bigint, bigint) OWNER TO countersign_owner;

REVOKE EXECUTE ON FUNCTION slack_subscription(uuid), action_events(uuid, bigint), prune_actions(uuid[], uuid[]), prune_events(uuid, bigint, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION slack_subscription(uuid), action_events(uuid, bigint) TO countersign_api;
GRANT EXECUTE ON FUNCTION prune_actions(uuid[], uuid[]), prune_events(uuid, bigint, bigint) TO countersign_worker;

-- Only the database sets the position and the time of an event.
GRANT SELECT, INSERT (tenant_id, kind, actor, items, digests) ON events TO countersign_api, countersign_worker;

GRANT SELECT ON checkpoints, approval_messages, notes, retention_checks TO countersign_api;
GRANT UPDATE (noted_at) ON checkpoints TO countersign_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON subscriptions TO countersign_api;
GRANT SELECT, INSERT, UPDATE ON retention TO countersign_api;

GRANT SELECT, INSERT ON checkpoints TO countersign_worker;
GRANT SELECT ON subscriptions, retention TO countersign_worker;
GRANT UPDATE (cursor_txid, cursor_event, cursor_item, looked_at, held_until, enabled, disabled_reason, updated_at, updated_by, version)
    ON subscriptions TO countersign_worker;
GRANT SELECT, INSERT, DELETE ON approval_messages TO countersign_worker;
GRANT SELECT, INSERT, UPDATE (key) ON notes TO countersign_worker;
GRANT SELECT, INSERT, UPDATE ON retention_checks TO countersign_worker;
