-- +goose Up

-- What agents noted with the tool countersign.note.create.
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
COMMENT ON COLUMN notes.note_id IS 'UUIDv7, so that the order of ids is that of time.';
COMMENT ON COLUMN notes.key IS 'The idempotency key of the call: every attempt of one envelope is one note.';

ALTER TABLE notes OWNER TO countersign_owner;
ALTER TABLE notes ENABLE ROW LEVEL SECURITY;
ALTER TABLE notes FORCE ROW LEVEL SECURITY;
CREATE POLICY notes_api ON notes TO countersign_api
    USING (tenant_id = (SELECT current_tenant())) WITH CHECK (tenant_id = (SELECT current_tenant()));
CREATE POLICY notes_worker ON notes TO countersign_worker USING (true) WITH CHECK (true);
GRANT SELECT ON notes TO countersign_api;
GRANT SELECT, INSERT, UPDATE (key) ON notes TO countersign_worker;
