-- +goose Up

-- The words of actions, for the search. A worker fills them after the commit, in the
-- order of the events: no proposal waits for it.
CREATE TABLE action_words (
    tenant_id uuid     NOT NULL,
    action_id uuid     NOT NULL,
    part      bigint   NOT NULL,
    words     tsvector NOT NULL,
    people    tsvector NOT NULL,
    CONSTRAINT action_words_pkey PRIMARY KEY (tenant_id, action_id),
    CONSTRAINT action_words_action_id_fkey FOREIGN KEY (tenant_id, action_id) REFERENCES actions (tenant_id, action_id) ON DELETE CASCADE
);
COMMENT ON COLUMN action_words.part IS 'The part of the index that the action is in. Each has actions of one tenant alone, the newer ones in a higher part.';
COMMENT ON COLUMN action_words.words IS 'Words of the arguments as they are now, redacted as for viewers, and of tool, session, automation and external id.';
COMMENT ON COLUMN action_words.people IS 'Words of the names of who proposed, edited and decided.';

-- One row of each tenant: how far its events were read.
CREATE TABLE action_word_cursors (
    tenant_id    uuid        NOT NULL,
    tenant_no    bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    cursor_txid  xid8        NOT NULL DEFAULT '0',
    cursor_event bigint      NOT NULL DEFAULT 0,
    filled       bigint      NOT NULL DEFAULT 0,
    next_at      timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT action_word_cursors_pkey PRIMARY KEY (tenant_id),
    CONSTRAINT action_word_cursors_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (tenant_id) ON DELETE CASCADE
);
COMMENT ON COLUMN action_word_cursors.tenant_no IS 'Begins the numbers of the tenant''s parts.';
COMMENT ON COLUMN action_word_cursors.filled IS 'Number of actions that were indexed.';
COMMENT ON COLUMN action_word_cursors.next_at IS 'When the next events may be read: the pause is some times as long as the work before it.';

-- action_word_part returns the part of the index for the n-th action of a tenant.
CREATE FUNCTION action_word_part(tenant_no bigint, n bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, countersign_data, pg_temp
AS $$ SELECT (tenant_no << 32) + (n >> 15) $$;

-- action_word_keys returns the keys of an action in the index: its words, each behind
-- the part. A search of a part reads the keys of that part alone, so that it takes no
-- longer than the part is large, however frequent the word and whatever other tenants
-- have.
CREATE FUNCTION action_word_keys(part bigint, words tsvector, people tsvector) RETURNS tsvector
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, countersign_data, pg_temp
AS $$ SELECT array_to_tsvector(ARRAY(SELECT to_hex(part) || ' ' || w FROM unnest(tsvector_to_array(words || people)) w)) $$;

-- action_word_query returns the query for all of some words; one that ends with * is
-- the beginning of a word.
CREATE FUNCTION action_word_query(words text[], prefix text) RETURNS tsquery
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, countersign_data, pg_temp
AS $$
    SELECT string_agg('''' || replace(replace(prefix || rtrim(w, '*'), '\', '\\'), '''', '''''') || CASE WHEN w LIKE '%*' THEN ''':*' ELSE '''' END, ' & ')::tsquery
    FROM unnest(words) w
$$;

-- Without a list of pending entries, which every search would read through.
CREATE INDEX action_words_keys ON action_words USING gin (action_word_keys(part, words, people)) WITH (fastupdate = off);

-- search_actions returns the current tenant's actions that have all of some words, the
-- newest first unless it is the oldest, after an action: most at most. It runs as the
-- owner: the operator of the index is not leakproof, so that a role with row-level
-- security could not use it.
-- +goose StatementBegin
CREATE FUNCTION search_actions(words text[], after uuid, oldest boolean, most bigint) RETURNS SETOF uuid
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, countersign_data, pg_temp SET enable_seqscan = off
AS $$
DECLARE
    first   bigint;
    last    bigint;
    here    bigint;
    at      bigint;
    wanted  bigint := most;
    found_n bigint;
BEGIN
    SELECT action_word_part(c.tenant_no, 0), action_word_part(c.tenant_no, c.filled) INTO first, last
    FROM action_word_cursors c
    WHERE c.tenant_id = current_tenant();
    -- The action may be gone: then the one before it shows the place.
    SELECT a.part INTO here
    FROM action_words a
    WHERE a.tenant_id = current_tenant() AND a.action_id <= after
    ORDER BY a.action_id DESC
    LIMIT 1;
    at := coalesce(here, CASE WHEN oldest OR after IS NOT NULL THEN first ELSE last END);
    WHILE at BETWEEN first AND last LOOP
        RETURN QUERY
        WITH found AS MATERIALIZED (
            SELECT a.tenant_id, a.action_id
            FROM action_words a
            WHERE action_word_keys(a.part, a.words, a.people) @@ action_word_query(search_actions.words, to_hex(at) || ' ')
        )
        SELECT f.action_id
        FROM found f
        WHERE f.tenant_id = current_tenant()
            AND (here IS DISTINCT FROM at OR after IS NULL OR CASE WHEN oldest THEN f.action_id > after ELSE f.action_id < after END)
        ORDER BY CASE WHEN oldest THEN f.action_id END, f.action_id DESC
        LIMIT wanted;
        GET DIAGNOSTICS found_n = ROW_COUNT;
        wanted := wanted - found_n;
        EXIT WHEN wanted <= 0;
        at := at + CASE WHEN oldest THEN 1 ELSE -1 END;
    END LOOP;
END
$$;

-- tenant_gets_word_cursor has the actions of a new tenant indexed.
CREATE FUNCTION tenant_gets_word_cursor() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, countersign_data, pg_temp
AS $$
BEGIN
    INSERT INTO action_word_cursors (tenant_id) VALUES (NEW.tenant_id);
    RETURN NULL;
END
$$;
-- +goose StatementEnd
INSERT INTO action_word_cursors (tenant_id) SELECT t.tenant_id FROM tenants t;
CREATE TRIGGER tenants_word_cursor AFTER INSERT ON tenants FOR EACH ROW EXECUTE FUNCTION tenant_gets_word_cursor();

-- +goose StatementBegin
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['action_words', 'action_word_cursors'] LOOP
        EXECUTE format('ALTER TABLE %I OWNER TO countersign_owner', t);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_worker USING (true) WITH CHECK (true)', t || '_worker', t);
        EXECUTE format('CREATE POLICY %I ON %I FOR SELECT TO countersign_api USING (tenant_id = (SELECT current_tenant()))', t || '_api', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_owner USING (true) WITH CHECK (true)', t || '_owner', t);
    END LOOP;
END
$$;
-- +goose StatementEnd
GRANT SELECT ON action_words, action_word_cursors TO countersign_api;
GRANT SELECT, INSERT, UPDATE (words, people) ON action_words TO countersign_worker;
GRANT SELECT, UPDATE (cursor_txid, cursor_event, filled, next_at) ON action_word_cursors TO countersign_worker;

ALTER FUNCTION action_word_part(bigint, bigint) OWNER TO countersign_owner;
ALTER FUNCTION action_word_keys(bigint, tsvector, tsvector) OWNER TO countersign_owner;
ALTER FUNCTION action_word_query(text[], text) OWNER TO countersign_owner;
ALTER FUNCTION search_actions(text[], uuid, boolean, bigint) OWNER TO countersign_owner;
ALTER FUNCTION tenant_gets_word_cursor() OWNER TO countersign_owner;
REVOKE EXECUTE ON FUNCTION action_word_part(bigint, bigint), action_word_keys(bigint, tsvector, tsvector), action_word_query(text[], text),
    search_actions(text[], uuid, boolean, bigint), tenant_gets_word_cursor() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION action_word_part(bigint, bigint), action_word_keys(bigint, tsvector, tsvector) TO countersign_worker; -- the index calls it
GRANT EXECUTE ON FUNCTION action_word_query(text[], text), search_actions(text[], uuid, boolean, bigint) TO countersign_api;
