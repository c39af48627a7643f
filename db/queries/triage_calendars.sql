-- name: TriageCalendarClaim :many
-- Claims calendars that were not read for some time, or whose account has another one
-- now. A process that dies afterwards delays the next reading.
INSERT INTO triage_calendars AS c (tenant_id, account_id, source_id, zone, tried_at)
SELECT a.tenant_id, a.account_id, a.proposals #>> '{brief,calendar}', a.proposals #>> '{brief,zone}', now()
FROM triage_accounts a
LEFT JOIN triage_calendars o ON o.tenant_id = a.tenant_id AND o.account_id = a.account_id
WHERE a.enabled AND a.proposals #>> '{brief,calendar}' <> '' AND a.proposals #>> '{brief,zone}' <> ''
    AND (o.tried_at IS NULL OR o.tried_at < @before::timestamptz OR o.tried_at > now() OR o.source_id <> a.proposals #>> '{brief,calendar}' OR o.zone <> a.proposals #>> '{brief,zone}')
ORDER BY o.tried_at NULLS FIRST, a.tenant_id, a.account_id
LIMIT @most::bigint
ON CONFLICT ON CONSTRAINT triage_calendars_pkey DO UPDATE
SET source_id = excluded.source_id, zone = excluded.zone, tried_at = excluded.tried_at, problem = '',
    read_at = CASE WHEN c.source_id = excluded.source_id AND c.zone = excluded.zone THEN c.read_at END,
    events = CASE WHEN c.source_id = excluded.source_id AND c.zone = excluded.zone THEN c.events ELSE '{}' END
WHERE c.tried_at < @before::timestamptz OR c.tried_at > now() OR c.source_id <> excluded.source_id OR c.zone <> excluded.zone
RETURNING c.tenant_id, c.account_id, c.source_id, c.zone;

-- name: TriageCalendarGet :one
-- The calendar of an account, as it was last read from a source for a zone.
SELECT c.read_at, c.problem, c.events
FROM triage_calendars c
WHERE c.tenant_id = @tenant_id AND c.account_id = @account_id AND c.source_id = @source_id AND c.zone = @zone;

-- name: TriageCalendarPut :exec
-- Stores the events of a calendar, or why it was not read.
UPDATE triage_calendars c
SET problem = @problem, read_at = CASE WHEN @problem::text = '' THEN now() ELSE c.read_at END, events = CASE WHEN @problem::text = '' THEN @events::jsonb ELSE c.events END
WHERE c.tenant_id = @tenant_id AND c.account_id = @account_id AND c.source_id = @source_id AND c.zone = @zone;
