-- name: TriageAccountDelete :execrows
DELETE FROM triage_accounts WHERE tenant_id = @tenant_id AND name = @name;

-- name: TriageAccountList :many
-- All accounts of a tenant, or those with the ids.
SELECT a.account_id, a.name, a.kind, a.connection, a.settings, a.proposals, a.texts, coalesce(a.secret_from, '')::text AS secret_from, a.secret, a.enabled,
    a.every_seconds, a.backfill_days, coalesce(a.operator_id, '00000000-0000-0000-0000-000000000000')::uuid AS operator_id, a.version, a.created_at, a.updated_at
FROM triage_accounts a
WHERE a.tenant_id = @tenant_id AND (coalesce(cardinality(@names::text[]), 0) = 0 OR a.name = ANY (@names::text[]))
ORDER BY a.name;

-- name: TriageAccountPut :one
-- Inserts an account, or updates the one of that name, which keeps its id and
-- kind.
INSERT INTO triage_accounts AS a (
    tenant_id, account_id, name, kind, connection, settings, proposals, texts, secret_from, secret, enabled, every_seconds, backfill_days, operator_id)
VALUES (
    @tenant_id, @account_id, @name, @kind, @connection, @settings, @proposals, @texts, nullif(@secret_from::text, ''), sqlc.narg(secret), @enabled,
    @every_seconds, @backfill_days, sqlc.narg(operator_id))
ON CONFLICT (tenant_id, name) DO UPDATE
SET connection = excluded.connection,
    settings = excluded.settings,
    proposals = excluded.proposals,
    texts = excluded.texts,
    secret_from = excluded.secret_from,
    secret = excluded.secret,
    enabled = excluded.enabled,
    every_seconds = excluded.every_seconds,
    backfill_days = excluded.backfill_days,
    operator_id = excluded.operator_id,
    version = a.version + 1,
    updated_at = now()
RETURNING a.account_id, a.kind;

-- name: TriageAccountRenewed :execrows
-- Replaces the secret of an account by its renewed one, unless a person has replaced
-- it. The version stays: the account is the same.
UPDATE triage_accounts a SET secret = @secret WHERE a.tenant_id = @tenant_id AND a.account_id = @account_id AND a.secret = @old;
