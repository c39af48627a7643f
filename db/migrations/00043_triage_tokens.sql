-- +goose Up

-- Triage stores the renewed token of an account that logs in with OAuth.
GRANT UPDATE (secret) ON triage_accounts TO countersign_triage;

COMMENT ON COLUMN triage_accounts.secret IS 'The password for reading, or the login at an authorization server with its tokens; encrypted with the key of triage.';
