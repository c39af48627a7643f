-- name: BackgroundDue :one
-- Reports which of a worker's loops have work, in one statement for all of them,
-- since most of the time none has. Every condition is the same as in the loop's
-- own statement, and has an index.
SELECT
    (EXISTS (SELECT 1 FROM pauses p WHERE p.kill AND p.swept_at IS NULL OR p.lifted_at IS NOT NULL AND p.woken_at IS NULL)
        OR EXISTS (SELECT 1 FROM wakes))::boolean AS sweeps,
    EXISTS (
        SELECT 1 FROM subscriptions s
        WHERE s.enabled
            AND (s.held_until IS NULL OR s.held_until <= now())
            AND EXISTS (SELECT 1 FROM events e WHERE e.tenant_id = s.tenant_id AND (e.txid, e.event_id) > (s.cursor_txid, s.cursor_event))
    )::boolean AS messages,
    (EXISTS (SELECT 1 FROM actions a WHERE a.approval_state = 'required' AND a.approval_expires_at <= now())
        OR EXISTS (SELECT 1 FROM approvals p WHERE p.warn_at <= now())
        OR EXISTS (SELECT 1 FROM approvals p WHERE p.escalate_at <= now())
        OR EXISTS (SELECT 1 FROM triage_proposals t WHERE t.withdraw_at <= now())
        OR EXISTS (SELECT 1 FROM session_modes m WHERE m.expires_at <= now())
        OR EXISTS (SELECT 1 FROM grants g WHERE g.revoked_at IS NULL AND g.expiry_recorded_at IS NULL AND g.expires_at <= now()))::boolean AS expiries,
    EXISTS (
        SELECT 1 FROM workflows w WHERE w.state IN ('running', 'reverting', 'stuck', 'compensation_failed') AND w.check_at IS NOT NULL
    )::boolean AS workflows,
    EXISTS (
        SELECT 1 FROM db_logins l
        CROSS JOIN LATERAL (
            SELECT p.proposal_no FROM proposals p WHERE p.login_id = l.login_id AND p.answered_at IS NULL ORDER BY p.proposal_no LIMIT 1
        ) first
        WHERE l.held_until IS NULL OR l.held_until <= now() OR l.counted_at IS NULL OR l.counted_at < now() - interval '2 seconds'
    )::boolean AS proposals,
    EXISTS (
        SELECT 1 FROM action_word_cursors c
        WHERE (c.next_at <= now() OR c.next_at > now() + interval '1 minute')
            AND EXISTS (SELECT 1 FROM events e WHERE e.tenant_id = c.tenant_id AND (e.txid, e.event_id) > (c.cursor_txid, c.cursor_event))
    )::boolean AS words,
    EXISTS (SELECT 1 FROM dead_letters d WHERE d.reconcile_at <= now() AND NOT bucket_paused(d.tenant_id, ''))::boolean AS reconciliations,
    EXISTS (
        SELECT 1 FROM sources s
        WHERE s.enabled
            AND (s.listed_at IS NULL OR s.listed_at < now() - make_interval(secs => least(@max_age_seconds::float8,
                    CASE WHEN s.list_failures > 0 THEN 5 * power(2, least(s.list_failures, 20) - 1) END))
                OR s.listed_at > now() + interval '1 minute' OR s.refresh_asked_at > s.listed_at)
    )::boolean AS listings;
