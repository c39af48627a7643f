-- +goose Up

-- What triage did by itself is shown to people until somebody acknowledges it.
-- What it did before counts as acknowledged.
ALTER TABLE triage_proposals ADD COLUMN noticed_at timestamptz DEFAULT now();
ALTER TABLE triage_proposals ALTER COLUMN noticed_at DROP DEFAULT;
COMMENT ON COLUMN triage_proposals.noticed_at IS 'When a person acknowledged the action, if it ran without a person; NULL before.';
CREATE INDEX triage_proposals_notice_idx ON triage_proposals (tenant_id, proposal_id) WHERE noticed_at IS NULL;
GRANT UPDATE (noticed_at) ON triage_proposals TO countersign_api;
GRANT EXECUTE ON FUNCTION triage_args_allowed(text, jsonb, jsonb) TO countersign_api; -- a constraint of the table calls it

-- approval_kind returns the kind of an action that waits for approval: review for
-- a text that triage wrote, question for a message that triage is unsure of.
CREATE FUNCTION approval_kind(of_tenant uuid, of_action uuid, of_external text, of_tool text) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, countersign_data, pg_temp
AS $$
    SELECT CASE WHEN of_external LIKE 'triage:%' THEN coalesce((
        SELECT CASE WHEN of_tool IN ('message.draft', 'message.send') THEN 'review' WHEN d.question THEN 'question' END
        FROM countersign_data.triage_proposals p
        LEFT JOIN countersign_data.triage_decisions d ON d.tenant_id = p.tenant_id AND d.message_id = p.message_id
        WHERE p.tenant_id = of_tenant AND p.external_id = of_external AND p.proposal_id = of_action
    ), 'approval') ELSE 'approval' END
$$;
ALTER FUNCTION approval_kind(uuid, uuid, text, text) OWNER TO countersign_owner;
REVOKE EXECUTE ON FUNCTION approval_kind(uuid, uuid, text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION approval_kind(uuid, uuid, text, text) TO countersign_api;
