-- +goose Up

ALTER TABLE sources
    DROP CONSTRAINT sources_kind_check,
    ADD CONSTRAINT sources_kind_check
        CHECK (kind IN ('mcp', 'builtin', 'tool_gateway', 'composio', 'slack', 'linear', 'sentry', 'webhook'));

-- Who outside is told of events, and how far they have been told. What is
-- told goes out as envelopes of the source.
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
COMMENT ON COLUMN subscriptions.subscription_id IS 'Its deliveries run under the automation countersign.subscription.<id>. One that is made anew under a name has another, so that it inherits nothing.';
COMMENT ON COLUMN subscriptions.signing_secret IS 'Of the Slack app whose buttons act for it, sealed apart from the source''s credentials: the one secret that the API opens.';
COMMENT ON COLUMN subscriptions.disabled_reason IS 'Why it was switched off by itself; NULL if it was not.';
COMMENT ON COLUMN subscriptions.cursor_item IS 'How many items of the event behind the cursor have been told already.';
COMMENT ON COLUMN subscriptions.held_until IS 'Looking went wrong, and is tried again then.';
COMMENT ON COLUMN subscriptions.version IS 'The tenant''s config_version as of the last change of what policy sees.';

-- A message in Slack that asks for a decision, until it shows the decision. A
-- button counts only in a message that stands here.
CREATE TABLE notices (
    tenant_id       uuid        NOT NULL,
    subscription_id uuid        NOT NULL,
    action_id       uuid        NOT NULL,
    delivery_id     uuid        NOT NULL,
    CONSTRAINT notices_pkey PRIMARY KEY (tenant_id, subscription_id, action_id, delivery_id),
    CONSTRAINT notices_subscription_id_fkey FOREIGN KEY (tenant_id, subscription_id)
        REFERENCES subscriptions (tenant_id, subscription_id) ON DELETE CASCADE
);
CREATE INDEX notices_delivery_idx ON notices (tenant_id, subscription_id, delivery_id);
COMMENT ON COLUMN notices.action_id IS 'The envelope that waits for a decision.';
COMMENT ON COLUMN notices.delivery_id IS 'The envelope that sends the message.';

-- Only what policy sees counts as a change of configuration; the cursor moves
-- all the time.
CREATE TRIGGER subscriptions_stamp_insert BEFORE INSERT ON subscriptions FOR EACH ROW EXECUTE FUNCTION stamp_policy_version();
CREATE TRIGGER subscriptions_stamp_update BEFORE UPDATE ON subscriptions FOR EACH ROW
    WHEN ((OLD.source_id, OLD.enabled) IS DISTINCT FROM (NEW.source_id, NEW.enabled))
    EXECUTE FUNCTION stamp_policy_version();
CREATE TRIGGER subscriptions_bump_insert AFTER INSERT ON subscriptions REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER subscriptions_bump_delete AFTER DELETE ON subscriptions REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER subscriptions_bump_update AFTER UPDATE ON subscriptions FOR EACH ROW
    WHEN ((OLD.source_id, OLD.enabled) IS DISTINCT FROM (NEW.source_id, NEW.enabled))
    EXECUTE FUNCTION bump_config_version_row();

-- Finds the subscription that a button's request is for, before its tenant is
-- known. The request has to be signed with its secret then.
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

-- +goose StatementBegin
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['subscriptions', 'notices'] LOOP
        EXECUTE format('ALTER TABLE %I OWNER TO countersign_owner', t);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_api USING (tenant_id = (SELECT current_tenant())) WITH CHECK (tenant_id = (SELECT current_tenant()))', t || '_api', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_worker USING (true) WITH CHECK (true)', t || '_worker', t);
    END LOOP;
END
$$;
-- +goose StatementEnd
ALTER FUNCTION slack_subscription(uuid) OWNER TO countersign_owner;
CREATE POLICY subscriptions_owner ON subscriptions FOR SELECT TO countersign_owner USING (true);
REVOKE EXECUTE ON FUNCTION slack_subscription(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION slack_subscription(uuid) TO countersign_api;

GRANT SELECT, INSERT, UPDATE, DELETE ON subscriptions TO countersign_api;
GRANT SELECT ON notices TO countersign_api;
GRANT SELECT ON subscriptions TO countersign_worker;
GRANT UPDATE (cursor_txid, cursor_event, cursor_item, looked_at, held_until, enabled, disabled_reason, updated_at, updated_by, version)
    ON subscriptions TO countersign_worker;
GRANT SELECT, INSERT, DELETE ON notices TO countersign_worker;
-- Deliveries are proposed by the fleet, in the transaction that moves the
-- cursor.
GRANT INSERT ON actions, decisions TO countersign_worker;
