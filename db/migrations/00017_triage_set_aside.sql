-- +goose Up

-- Messages that triage could not read, judge or store: each is set aside with its
-- reason, so that the others of its account go on. A person may have it read again.
CREATE TABLE triage_set_aside (
    tenant_id    uuid        NOT NULL,
    account_id   uuid        NOT NULL,
    folder       text        NOT NULL,
    key          text        NOT NULL,
    received_at  timestamptz NOT NULL,
    size         bigint      NOT NULL,
    step         text        NOT NULL CONSTRAINT triage_set_aside_step_check CHECK (step IN ('list', 'read', 'store')),
    reason       text        NOT NULL,
    attempts     integer     NOT NULL DEFAULT 1,
    since        timestamptz NOT NULL DEFAULT now(),
    tried_at     timestamptz NOT NULL DEFAULT now(),
    again        boolean     NOT NULL DEFAULT false,
    CONSTRAINT triage_set_aside_pkey PRIMARY KEY (tenant_id, account_id, folder, key),
    CONSTRAINT triage_set_aside_account_fkey FOREIGN KEY (tenant_id, account_id) REFERENCES triage_accounts (tenant_id, account_id) ON DELETE CASCADE
);
COMMENT ON COLUMN triage_set_aside.key IS 'The key of the location in the folder, without what a text cannot hold; empty for messages that the account lists without a usable key.';
COMMENT ON COLUMN triage_set_aside.step IS 'What failed: the listing gave no usable entry, the message could not be read, or it could not be judged and stored.';
COMMENT ON COLUMN triage_set_aside.again IS 'A person asked for it to be read again; the next run does.';

ALTER TABLE triage_set_aside OWNER TO countersign_owner;
ALTER TABLE triage_set_aside ENABLE ROW LEVEL SECURITY;
ALTER TABLE triage_set_aside FORCE ROW LEVEL SECURITY;
CREATE POLICY triage_set_aside_api ON triage_set_aside TO countersign_api USING (tenant_id = (SELECT current_tenant())) WITH CHECK (tenant_id = (SELECT current_tenant()));
CREATE POLICY triage_set_aside_triage ON triage_set_aside TO countersign_triage USING (tenant_id = (SELECT triage_tenant())) WITH CHECK (tenant_id = (SELECT triage_tenant()));
GRANT SELECT, UPDATE (again) ON triage_set_aside TO countersign_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON triage_set_aside TO countersign_triage;

-- A proposal about which nobody decided in time is proposed once more, under another
-- name. One that its owner made pointless is withdrawn by a worker.
ALTER TABLE triage_proposals
    ADD COLUMN repeats text,
    ADD COLUMN withdraw_at timestamptz,
    DROP CONSTRAINT triage_proposals_outcome_check,
    ADD CONSTRAINT triage_proposals_outcome_check CHECK (outcome IN ('approved', 'denied', 'undone', 'reverted', 'expired', 'withdrawn'));
CREATE UNIQUE INDEX triage_proposals_repeats_key ON triage_proposals (tenant_id, repeats);
CREATE INDEX triage_proposals_expired_idx ON triage_proposals (tenant_id, account_id) WHERE outcome = 'expired';
CREATE INDEX triage_proposals_withdraw_idx ON triage_proposals (withdraw_at) WHERE withdraw_at IS NOT NULL;
COMMENT ON COLUMN triage_proposals.repeats IS 'The external_id of the proposal that expired, which this one repeats; NULL for a first proposal. A repeated one is not repeated.';
COMMENT ON COLUMN triage_proposals.withdraw_at IS 'When the owner was seen to have moved or flagged the message, so that the proposal is pointless; NULL before, and after a worker has withdrawn the action or found it decided.';
GRANT UPDATE (withdraw_at) ON triage_proposals TO countersign_triage;
GRANT SELECT (tenant_id, external_id, proposal_id, withdraw_at, outcome, outcome_due), UPDATE (withdraw_at, outcome, outcome_due) ON triage_proposals TO countersign_worker;
GRANT EXECUTE ON FUNCTION triage_args_allowed(text, jsonb, jsonb) TO countersign_worker; -- a constraint of the table calls it
CREATE POLICY triage_proposals_worker ON triage_proposals TO countersign_worker USING (true);

CREATE TRIGGER actions_triage_expired AFTER UPDATE OF approval_state ON actions FOR EACH ROW
    WHEN (NEW.approval_state = 'expired' AND OLD.approval_state = 'required' AND NEW.external_id LIKE 'triage:%') EXECUTE FUNCTION note_triage_outcome('expired');

-- Those that expired before, which nobody had days to decide about.
UPDATE triage_proposals p
SET outcome = 'expired', outcome_due = true
FROM actions a
WHERE a.tenant_id = p.tenant_id AND a.external_id = p.external_id AND a.approval_state = 'expired' AND p.outcome IS NULL;

-- Accounts that were set up before have their proposals wait for a week as well.
ALTER TABLE reviews NO FORCE ROW LEVEL SECURITY;
ALTER TABLE triage_accounts NO FORCE ROW LEVEL SECURITY;
INSERT INTO reviews (tenant_id, key, risk, wait_seconds, updated_by)
SELECT DISTINCT a.tenant_id, (a.proposals ->> 'source') || ':*', 'low', 604800, 'triage' FROM triage_accounts a WHERE a.proposals ->> 'source' ~ '^[a-z0-9][a-z0-9_.-]{0,99}$'
ON CONFLICT (tenant_id, key, risk) DO UPDATE SET wait_seconds = coalesce(reviews.wait_seconds, excluded.wait_seconds);
ALTER TABLE triage_accounts FORCE ROW LEVEL SECURITY;
ALTER TABLE reviews FORCE ROW LEVEL SECURITY;
