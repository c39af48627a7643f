-- +goose Up

-- How much one session of an agent may propose: 0 is without limit.
ALTER TABLE tenants
    ADD COLUMN session_pending_max integer NOT NULL DEFAULT 10
        CONSTRAINT tenants_session_pending_max_check CHECK (session_pending_max BETWEEN 0 AND 1000000),
    ADD COLUMN session_minute_max integer NOT NULL DEFAULT 60
        CONSTRAINT tenants_session_minute_max_check CHECK (session_minute_max BETWEEN 0 AND 1000000);
COMMENT ON COLUMN tenants.session_pending_max IS 'How many envelopes of one session may wait for a decision at a time; 0 is any number.';
COMMENT ON COLUMN tenants.session_minute_max IS 'How many envelopes one session may propose in a minute that begins with the first; 0 is any number.';
CREATE TRIGGER tenants_session_limits BEFORE UPDATE ON tenants FOR EACH ROW
    WHEN ((OLD.session_pending_max, OLD.session_minute_max) IS DISTINCT FROM (NEW.session_pending_max, NEW.session_minute_max))
    EXECUTE FUNCTION tenant_settings_changed();

-- What a session proposed in its current minute. The lock on its row makes one
-- proposal of a session go after another, on whichever replica they are.
CREATE TABLE session_usage (
    tenant_id   uuid        NOT NULL,
    session_id  text        NOT NULL,
    window_from timestamptz NOT NULL,
    used        integer     NOT NULL,
    CONSTRAINT session_usage_pkey PRIMARY KEY (tenant_id, session_id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX session_usage_window_from ON session_usage USING brin (window_from);
COMMENT ON TABLE session_usage IS 'A row whose minute is over means nothing, and may go.';

-- Small: what waits for a decision.
CREATE INDEX actions_session_pending ON actions (tenant_id, session_id, approval_expires_at)
    WHERE approval_state = 'required' AND session_id IS NOT NULL;

ALTER TABLE session_usage OWNER TO countersign_owner;
ALTER TABLE session_usage ENABLE ROW LEVEL SECURITY;
ALTER TABLE session_usage FORCE ROW LEVEL SECURITY;
CREATE POLICY session_usage_api ON session_usage TO countersign_api
    USING (tenant_id = (SELECT current_tenant())) WITH CHECK (tenant_id = (SELECT current_tenant()));
CREATE POLICY session_usage_worker ON session_usage TO countersign_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT, UPDATE ON session_usage TO countersign_api;
GRANT SELECT, DELETE ON session_usage TO countersign_worker;
GRANT UPDATE (session_pending_max, session_minute_max) ON tenants TO countersign_api;
