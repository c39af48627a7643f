-- +goose Up

-- The addresses and domains in calls that people approved, by keys: two names that may be
-- taken for each other share one. A worker fills it with the words of actions.
CREATE TABLE known_addresses (
    tenant_id uuid NOT NULL,
    key       text NOT NULL,
    name      text NOT NULL,
    action_id uuid NOT NULL,
    CONSTRAINT known_addresses_pkey PRIMARY KEY (tenant_id, key, name),
    CONSTRAINT known_addresses_action_id_fkey FOREIGN KEY (tenant_id, action_id) REFERENCES actions (tenant_id, action_id) ON DELETE CASCADE
);
COMMENT ON COLUMN known_addresses.action_id IS 'The last action with the name that a person approved. The name is deleted with it.';
CREATE INDEX known_addresses_action_id ON known_addresses (tenant_id, action_id);

ALTER TABLE known_addresses OWNER TO countersign_owner;
ALTER TABLE known_addresses ENABLE ROW LEVEL SECURITY;
ALTER TABLE known_addresses FORCE ROW LEVEL SECURITY;
CREATE POLICY known_addresses_worker ON known_addresses TO countersign_worker USING (true) WITH CHECK (true);
CREATE POLICY known_addresses_api ON known_addresses FOR SELECT TO countersign_api USING (tenant_id = (SELECT current_tenant()));
CREATE POLICY known_addresses_owner ON known_addresses TO countersign_owner USING (true) WITH CHECK (true);
GRANT SELECT ON known_addresses TO countersign_api;
GRANT SELECT, INSERT, UPDATE (action_id) ON known_addresses TO countersign_worker;
