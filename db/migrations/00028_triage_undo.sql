-- +goose Up

-- The operator whom a mail account names takes back alone what triage did there.
ALTER TABLE triage_accounts
    ADD COLUMN operator_id uuid,
    ADD CONSTRAINT triage_accounts_operator_id_fkey FOREIGN KEY (tenant_id, operator_id) REFERENCES operators (tenant_id, operator_id);
CREATE INDEX triage_accounts_operator_idx ON triage_accounts (tenant_id, operator_id) WHERE operator_id IS NOT NULL;
COMMENT ON COLUMN triage_accounts.operator_id IS 'The person whose mail it is, who needs nobody to agree when they undo what triage did; NULL for none.';

ALTER TABLE triage_proposals ADD COLUMN run_id uuid;
CREATE INDEX triage_proposals_run_idx ON triage_proposals (tenant_id, run_id) WHERE run_id IS NOT NULL;
CREATE INDEX triage_proposals_account_idx ON triage_proposals (tenant_id, account_id);
COMMENT ON COLUMN triage_proposals.run_id IS 'The run that proposed it; NULL if that is not known.';

-- One run at a time reads an account, so the time of a proposal tells its run.
ALTER TABLE triage_proposals NO FORCE ROW LEVEL SECURITY;
ALTER TABLE triage_runs NO FORCE ROW LEVEL SECURITY;
UPDATE triage_proposals p
SET run_id = r.run_id
FROM triage_runs r
WHERE r.tenant_id = p.tenant_id AND r.account_id = p.account_id AND p.proposed_at BETWEEN r.started_at AND r.ended_at;
ALTER TABLE triage_runs FORCE ROW LEVEL SECURITY;
ALTER TABLE triage_proposals FORCE ROW LEVEL SECURITY;
