-- +goose Up

-- The labels that the owner of a mail account describes. No decision reads them.
CREATE TABLE triage_labels (
    tenant_id    uuid        NOT NULL,
    account_id   uuid        NOT NULL,
    name         text        NOT NULL CONSTRAINT triage_labels_name_check CHECK (name ~ '^[a-z0-9][a-z0-9_-]{0,39}$'),
    definition   jsonb,
    tried        bytea,
    set_by       text        NOT NULL,
    set_at       timestamptz NOT NULL DEFAULT now(),
    matched_at   timestamptz,
    CONSTRAINT triage_labels_pkey PRIMARY KEY (tenant_id, account_id, name),
    CONSTRAINT triage_labels_account_fkey FOREIGN KEY (tenant_id, account_id) REFERENCES triage_accounts (tenant_id, account_id) ON DELETE CASCADE
);
COMMENT ON COLUMN triage_labels.definition IS 'The definition in force (label.Definition); NULL for a label that was only tried.';
COMMENT ON COLUMN triage_labels.matched_at IS 'When messages were last matched; NULL if those of the past are not due yet.';
COMMENT ON COLUMN triage_labels.tried IS 'The digest of the definition that was tried last.';

-- The messages that a label matches, and those about which the owner decided.
CREATE TABLE triage_labeled (
    tenant_id    uuid        NOT NULL,
    message_id   uuid        NOT NULL,
    label        text        NOT NULL,
    account_id   uuid        NOT NULL,
    score        double precision NOT NULL,
    because      text[]      NOT NULL DEFAULT '{}',
    holds      boolean,
    decided_by   text,
    labeled_at   timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT triage_labeled_pkey PRIMARY KEY (tenant_id, message_id, label),
    CONSTRAINT triage_labeled_message_fkey FOREIGN KEY (tenant_id, message_id) REFERENCES triage_messages (tenant_id, message_id) ON DELETE CASCADE,
    CONSTRAINT triage_labeled_label_fkey FOREIGN KEY (tenant_id, account_id, label) REFERENCES triage_labels (tenant_id, account_id, name) ON DELETE CASCADE,
    CONSTRAINT triage_labeled_holds_check CHECK ((holds IS NULL) = (decided_by IS NULL))
);
CREATE INDEX triage_labeled_label_idx ON triage_labeled (tenant_id, account_id, label);
COMMENT ON COLUMN triage_labeled.because IS 'Words of the definition, and "examples"; no other text of the mail.';
COMMENT ON COLUMN triage_labeled.holds IS 'Whether the owner confirmed or rejected the label; such messages are its examples. NULL for a match alone.';

-- The messages to match with the labels of their account.
CREATE TABLE triage_label_due (
    tenant_id    uuid        NOT NULL,
    account_id   uuid        NOT NULL,
    message_id   uuid        NOT NULL,
    CONSTRAINT triage_label_due_pkey PRIMARY KEY (tenant_id, account_id, message_id),
    CONSTRAINT triage_label_due_message_fkey FOREIGN KEY (tenant_id, message_id) REFERENCES triage_messages (tenant_id, message_id) ON DELETE CASCADE
);
CREATE INDEX triage_label_due_message_idx ON triage_label_due (tenant_id, message_id);

-- New messages are due where their account has labels.
-- +goose StatementBegin
CREATE FUNCTION triage_labels_new() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, countersign_data, pg_temp
AS $$
BEGIN
    INSERT INTO triage_label_due (tenant_id, account_id, message_id)
    SELECT i.tenant_id, i.account_id, i.message_id
    FROM inserted i
    WHERE EXISTS (SELECT FROM triage_labels l WHERE l.tenant_id = i.tenant_id AND l.account_id = i.account_id AND l.definition IS NOT NULL)
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
ALTER FUNCTION triage_labels_new() OWNER TO countersign_owner;
REVOKE EXECUTE ON FUNCTION triage_labels_new() FROM PUBLIC;
CREATE TRIGGER triage_decisions_labels AFTER INSERT ON triage_decisions REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION triage_labels_new();

-- triage_label_state returns the state of a label on a message of a cohort. On mail
-- of people it is proposed until the owner confirms it.
CREATE FUNCTION triage_label_state(holds boolean, cohort text) RETURNS text
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, countersign_data, pg_temp
AS $$
    SELECT CASE WHEN holds THEN 'confirmed' WHEN NOT holds THEN 'rejected'
        WHEN cohort IN ('newsletters', 'social', 'transactional') THEN 'applied' ELSE 'proposed' END
$$;
ALTER FUNCTION triage_label_state(boolean, text) OWNER TO countersign_owner;
REVOKE EXECUTE ON FUNCTION triage_label_state(boolean, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION triage_label_state(boolean, text) TO countersign_api;

-- +goose StatementBegin
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['triage_labels', 'triage_labeled', 'triage_label_due'] LOOP
        EXECUTE format('ALTER TABLE %I OWNER TO countersign_owner', t);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_api USING (tenant_id = (SELECT current_tenant())) WITH CHECK (tenant_id = (SELECT current_tenant()))', t || '_api', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_triage USING (tenant_id = (SELECT triage_tenant())) WITH CHECK (tenant_id = (SELECT triage_tenant()))', t || '_triage', t);
    END LOOP;
END
$$;
-- +goose StatementEnd

-- People define labels and decide; triage matches.
GRANT SELECT, INSERT, UPDATE, DELETE ON triage_labels, triage_labeled TO countersign_api;
GRANT SELECT ON triage_label_due TO countersign_api;
GRANT SELECT, UPDATE (matched_at) ON triage_labels TO countersign_triage;
GRANT SELECT, INSERT (tenant_id, message_id, label, account_id, score, because), UPDATE (score, because, labeled_at) ON triage_labeled TO countersign_triage;
GRANT SELECT, INSERT, DELETE ON triage_label_due TO countersign_triage;
