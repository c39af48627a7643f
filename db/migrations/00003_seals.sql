-- +goose Up

-- The events of each tenant, sealed in batches into a chain of hashes. A seal
-- says of every event that it covers where it stands and what it says, so
-- that one that was changed, taken out or put in shows, and which.
CREATE TABLE seals (
    tenant_id    uuid        NOT NULL,
    seal_no      bigint      NOT NULL,
    version      integer     NOT NULL,
    from_txid    xid8        NOT NULL,
    from_event   bigint      NOT NULL,
    until_txid   xid8        NOT NULL,
    until_event  bigint      NOT NULL,
    oldest_at    timestamptz NOT NULL,
    newest_at    timestamptz NOT NULL,
    events       integer     NOT NULL CONSTRAINT seals_events_check CHECK (events > 0),
    leaves       bytea       NOT NULL,
    prev_hash    bytea       NOT NULL,
    hash         bytea       NOT NULL,
    sealed_at    timestamptz NOT NULL,
    pruned_at    timestamptz,
    pruned_txid  xid8,
    pruned_event bigint,
    CONSTRAINT seals_pkey PRIMARY KEY (tenant_id, seal_no),
    CONSTRAINT seals_pruned_check CHECK ((pruned_at IS NULL) = (pruned_txid IS NULL) AND (pruned_at IS NULL) = (pruned_event IS NULL))
);
CREATE UNIQUE INDEX seals_until_key ON seals (tenant_id, until_txid, until_event);
CREATE INDEX seals_kept ON seals (tenant_id, seal_no) WHERE pruned_at IS NULL;
CREATE INDEX seals_pruned ON seals (tenant_id, seal_no) WHERE pruned_at IS NOT NULL;
-- Hashes do not compress.
ALTER TABLE seals ALTER COLUMN leaves SET STORAGE EXTERNAL;
COMMENT ON COLUMN seals.version IS 'The form of what the hashes are taken of.';
COMMENT ON COLUMN seals.from_txid IS 'The place of the first event covered; until_txid and until_event are that of the last. Whatever lies behind the seal before and up to there belongs to this one.';
COMMENT ON COLUMN seals.leaves IS 'For each event its place, twice eight bytes, and its hash, 32 bytes, in the order of places.';
COMMENT ON COLUMN seals.prev_hash IS 'The hash of the seal before; zeros in the first.';
COMMENT ON COLUMN seals.hash IS 'SHA-256 of all columns above, and sealed_at.';
COMMENT ON COLUMN seals.pruned_at IS 'When retention took the events; pruned_txid and pruned_event are the place of the event that tells of it. No hash covers these, so a reader looks for that event.';

-- How long a tenant keeps what. Without a row it is 90 days and a notice.
CREATE TABLE retention (
    tenant_id  uuid        NOT NULL CONSTRAINT retention_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    kind       text        NOT NULL CONSTRAINT retention_kind_check CHECK (kind IN ('ledger', 'events')),
    days       integer     NOT NULL CONSTRAINT retention_days_check CHECK (days BETWEEN 1 AND 36500),
    action     text        NOT NULL CONSTRAINT retention_action_check CHECK (action IN ('delete', 'notice')),
    updated_at timestamptz NOT NULL DEFAULT now(),
    updated_by text        NOT NULL DEFAULT '',
    CONSTRAINT retention_pkey PRIMARY KEY (tenant_id, kind)
);
COMMENT ON COLUMN retention.kind IS 'ledger: envelopes that ended, and their attempts. events: what the seals cover.';

-- What the daily look found to be older than a limit that only gives notice.
CREATE TABLE retention_checks (
    tenant_id  uuid        NOT NULL CONSTRAINT retention_checks_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    checked_at timestamptz NOT NULL,
    ledger     bigint      NOT NULL,
    events     bigint      NOT NULL,
    CONSTRAINT retention_checks_pkey PRIMARY KEY (tenant_id)
);

-- Finds old envelopes. It costs the hot path a few pages, not an entry each.
CREATE INDEX actions_created_at ON actions USING brin (created_at) WITH (autosummarize = on);

-- Envelopes that ended, and when: neither on the schedule, nor waiting for a
-- decision, nor a dead letter. The only ones that retention may take.
CREATE VIEW ended_actions WITH (security_invoker = true) AS
SELECT a.tenant_id, a.action_id, a.created_at, greatest(a.created_at, a.decided_at, l.finished_at) AS ended_at
FROM actions a
LEFT JOIN LATERAL (
    SELECT max(e.finished_at) AS finished_at, bool_or(e.status <> 'pending') AS final
    FROM tool_executions e
    WHERE e.tenant_id = a.tenant_id AND e.action_id = a.action_id
) l ON true
WHERE a.approval_state <> 'required'
    AND (l.final OR a.approval_state IN ('denied', 'expired'))
    AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.tenant_id = a.tenant_id AND o.action_id = a.action_id)
    AND NOT EXISTS (SELECT 1 FROM dead_letters d WHERE d.tenant_id = a.tenant_id AND d.action_id = a.action_id);

-- Deletes envelopes with their attempts: of those named the ones that ended
-- longer ago than their tenant wants to keep them. No role may delete any
-- otherwise.
-- +goose StatementBegin
CREATE FUNCTION prune_actions(tenants uuid[], actions uuid[]) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    pruned bigint;
BEGIN
    WITH chosen AS MATERIALIZED (
        SELECT e.tenant_id, e.action_id
        FROM unnest(prune_actions.tenants, prune_actions.actions) AS w (tenant_id, action_id)
        JOIN ended_actions e ON e.tenant_id = w.tenant_id AND e.action_id = w.action_id
        JOIN retention r ON r.tenant_id = w.tenant_id
        WHERE r.kind = 'ledger' AND r.action = 'delete' AND e.ended_at < now() - make_interval(days => r.days)
    ), attempts AS (
        DELETE FROM tool_executions t
        USING chosen c
        WHERE t.tenant_id = c.tenant_id AND t.action_id = c.action_id
    ), gone AS (
        DELETE FROM actions a
        USING chosen c
        WHERE a.tenant_id = c.tenant_id AND a.action_id = c.action_id
        RETURNING a.action_id
    )
    SELECT count(1) INTO pruned FROM gone;
    RETURN pruned;
END
$$;
-- +goose StatementEnd

-- Deletes the events of some seals, from the oldest that has them, marks the
-- seals and writes the event that tells of it. Returns how many events went;
-- 0 if these are not the next seals, or not all old enough.
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
    -- Of two at once the second waits here, and then finds them pruned.
    PERFORM 1 FROM seals s WHERE s.tenant_id = tenant AND s.seal_no BETWEEN first_no AND last_no ORDER BY s.seal_no FOR UPDATE;
    SELECT min(s.seal_no) INTO oldest FROM seals s WHERE s.tenant_id = tenant AND s.pruned_at IS NULL;
    IF oldest IS DISTINCT FROM first_no OR EXISTS (
        SELECT 1
        FROM seals s
        WHERE s.tenant_id = tenant AND s.seal_no BETWEEN first_no AND last_no AND s.newest_at >= now() - make_interval(days => keep)
    ) THEN
        RETURN 0;
    END IF;
    SELECT s.until_txid, s.until_event INTO upper FROM seals s WHERE s.tenant_id = tenant AND s.seal_no = last_no;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    SELECT '0'::xid8 AS until_txid, 0::bigint AS until_event INTO lower;
    IF first_no > 1 THEN
        SELECT s.until_txid, s.until_event INTO lower FROM seals s WHERE s.tenant_id = tenant AND s.seal_no = first_no - 1;
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
        'subject', 'events of the seals ' || first_no || ' to ' || last_no || ' deleted',
        'detail', jsonb_build_object('from_seal', first_no, 'until_seal', last_no, 'events', pruned, 'days', keep))))
    RETURNING txid, event_id INTO told;
    UPDATE seals s
    SET pruned_at = now(), pruned_txid = told.txid, pruned_event = told.event_id
    WHERE s.tenant_id = tenant AND s.seal_no BETWEEN first_no AND last_no;
    RETURN pruned;
END
$$;
-- +goose StatementEnd

-- Drops the oldest of the ledger's partitions of past months in which nothing
-- is left, and says how many that were: one or none. To take one out needs the
-- ledger for itself; when others keep it busy for more than a fifth of a second
-- it is left to the next time, so that no writer waits longer.
-- +goose StatementBegin
CREATE FUNCTION drop_partitions() RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '200ms'
AS $$
DECLARE
    p     regclass;
    empty boolean;
BEGIN
    FOR p IN
        SELECT c.oid::regclass
        FROM pg_inherits i
        JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'public.tool_executions'::regclass
            AND c.relname ~ '^tool_executions_[0-9]{6}$'
            AND right(c.relname, 6) < to_char((now() - interval '7 days') AT TIME ZONE 'UTC', 'YYYYMM')
        ORDER BY c.relname
    LOOP
        EXECUTE format('SELECT NOT EXISTS (SELECT 1 FROM ONLY %s)', p) INTO empty;
        CONTINUE WHEN NOT empty;
        LOCK TABLE ONLY public.tool_executions IN ACCESS EXCLUSIVE MODE;
        EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE', p);
        EXECUTE format('SELECT NOT EXISTS (SELECT 1 FROM ONLY %s)', p) INTO empty;
        IF empty THEN
            EXECUTE format('DROP TABLE %s', p);
            RETURN 1;
        END IF;
        -- Somebody wrote of a time that is past. The locks end with the
        -- transaction.
        RETURN 0;
    END LOOP;
    RETURN 0;
EXCEPTION WHEN lock_not_available OR deadlock_detected OR undefined_table THEN
    -- Busy, or somebody else dropped it a moment ago.
    RETURN 0;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['seals', 'retention', 'retention_checks'] LOOP
        EXECUTE format('ALTER TABLE %I OWNER TO countersign_owner', t);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_api USING (tenant_id = (SELECT current_tenant())) WITH CHECK (tenant_id = (SELECT current_tenant()))', t || '_api', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_worker USING (true) WITH CHECK (true)', t || '_worker', t);
    END LOOP;
    -- What the functions that prune, which run as the owner, must see.
    FOREACH t IN ARRAY ARRAY['seals', 'events', 'actions', 'tool_executions'] LOOP
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_owner USING (true) WITH CHECK (true)', t || '_owner_prune', t);
    END LOOP;
    FOREACH t IN ARRAY ARRAY['retention', 'outbox', 'dead_letters'] LOOP
        EXECUTE format('CREATE POLICY %I ON %I FOR SELECT TO countersign_owner USING (true)', t || '_owner_prune', t);
    END LOOP;
END
$$;
-- +goose StatementEnd
ALTER VIEW ended_actions OWNER TO countersign_owner;
ALTER FUNCTION prune_actions(uuid[], uuid[]) OWNER TO countersign_owner;
ALTER FUNCTION prune_events(uuid, bigint, bigint) OWNER TO countersign_owner;
ALTER FUNCTION drop_partitions() OWNER TO countersign_owner;

REVOKE EXECUTE ON FUNCTION prune_actions(uuid[], uuid[]), prune_events(uuid, bigint, bigint), drop_partitions() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION prune_actions(uuid[], uuid[]), prune_events(uuid, bigint, bigint), drop_partitions() TO countersign_worker;

-- An event's place and time are the database's to give.
REVOKE INSERT ON events FROM countersign_api, countersign_worker;
GRANT INSERT (tenant_id, kind, actor, items) ON events TO countersign_api, countersign_worker;

GRANT SELECT ON seals TO countersign_api;
GRANT SELECT, INSERT ON seals TO countersign_worker;
REVOKE ALL ON ended_actions FROM PUBLIC;
GRANT SELECT ON ended_actions TO countersign_worker;
GRANT SELECT, INSERT, UPDATE ON retention TO countersign_api;
GRANT SELECT ON retention TO countersign_worker;
GRANT SELECT ON retention_checks TO countersign_api;
GRANT SELECT, INSERT, UPDATE ON retention_checks TO countersign_worker;
