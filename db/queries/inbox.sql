-- name: InboxDetails :many
-- Details of actions for the inbox, in addition to the data for a decision.
SELECT
    a.action_id, a.effect, a.bucket_id, a.must_run_before, a.created_at, a.decision_note, d.mode_source, p.edited_by,
    a.proposed_by, w.operator_id, coalesce(w.name, '')::text AS proposer, coalesce(a.external_id LIKE 'triage:%', false)::boolean AS triage, coalesce(a.external_id, '')::text AS external_id,
    CASE WHEN a.external_id LIKE 'triage:%' THEN approval_kind(a.tenant_id, a.action_id, a.external_id, a.tool_name) ELSE 'approval' END::text AS kind,
    ARRAY(
        SELECT v.actor FROM votes v
        WHERE v.tenant_id = a.tenant_id AND v.action_id = a.action_id AND v.round = p.round AND v.decision = 'grant'
            AND vote_counts(v.tenant_id, v.person, v.token, a.proposed_by, a.source_id, a.tool_name)
        ORDER BY v.at
    )::text[] AS voters
FROM actions a
JOIN decisions d ON d.tenant_id = a.tenant_id AND d.decision_id = a.decision_id
LEFT JOIN approvals p ON p.tenant_id = a.tenant_id AND p.action_id = a.action_id
LEFT JOIN proposers w ON w.tenant_id = a.tenant_id AND w.proposer_id = a.proposed_by
WHERE a.tenant_id = @tenant_id AND a.action_id = ANY (@action_ids::uuid[]);

-- name: InboxItems :many
-- The items that wait for a person, after a cursor: actions to decide about,
-- actions of unknown outcome, and steps of workflows that were done and could
-- not be reversed.
-- Each kind has at most @most rows, in the requested order;
-- items without an expiry are last.
--
-- It is planned for its values: the planner then drops the conditions and orders
-- that are not requested, and uses the one index with the order. Expiry is
-- compared as a difference, which no index has: without statistics the planner
-- would use the index on expiry for every order, read all waiting items, and
-- sort them.
(
    SELECT
        'approval'::text AS kind, a.action_id::uuid AS action_id, a.source_id, a.tool_name, coalesce(a.session_id, '')::text AS session_id, a.person, r.risk_rank::integer AS risk_rank,
        a.approval_expires_at AS expires_at, (p.escalated_at IS NOT NULL)::boolean AS escalated,
        NULL::timestamptz AS since, NULL::uuid AS workflow_id, NULL::text AS code, NULL::text AS message
    FROM actions a
    CROSS JOIN LATERAL (SELECT CASE a.risk WHEN 'high' THEN 1 WHEN 'medium' THEN 2 ELSE 3 END AS risk_rank) r
    LEFT JOIN approvals p ON p.tenant_id = a.tenant_id AND p.action_id = a.action_id
    WHERE @kinds::text[] && '{approval,question,review}'
        AND (@kinds::text[] @> '{approval,question,review}' OR approval_kind(a.tenant_id, a.action_id, a.external_id, a.tool_name) = ANY (@kinds::text[]))
        AND (@cohort::text = '' OR EXISTS (
            SELECT 1 FROM triage_proposals t
            JOIN triage_decisions m ON m.tenant_id = t.tenant_id AND m.message_id = t.message_id
            WHERE t.tenant_id = a.tenant_id AND t.external_id = a.external_id AND t.proposal_id = a.action_id AND m.cohort = @cohort::text
        ))
        AND a.tenant_id = @tenant_id AND a.approval_state = 'required' AND a.approval_expires_at - now() > interval '0'
        AND (cardinality(@words::text[]) = 0 OR EXISTS (
            SELECT 1 FROM action_words x
            WHERE x.tenant_id = a.tenant_id AND x.action_id = a.action_id AND (x.words || x.people) @@ action_word_query(@words::text[], '')
        ))
        AND (sqlc.narg(source)::text IS NULL OR a.source_id = sqlc.narg(source))
        AND (sqlc.narg(tool)::text IS NULL OR a.tool_name = sqlc.narg(tool))
        AND (sqlc.narg(session)::text IS NULL OR a.session_id = sqlc.narg(session))
        AND (sqlc.narg(automation)::text IS NULL OR a.automation_id = sqlc.narg(automation))
        AND (sqlc.narg(person)::uuid IS NULL OR a.person = sqlc.narg(person))
        AND (cardinality(@risk_ranks::integer[]) = 0 OR r.risk_rank = ANY (@risk_ranks::integer[]))
        AND (sqlc.narg(escalated)::boolean IS NULL OR (p.escalated_at IS NOT NULL) = sqlc.narg(escalated))
        AND (sqlc.narg(expires_before)::timestamptz IS NULL OR a.approval_expires_at < sqlc.narg(expires_before))
        AND CASE @sort::text
            WHEN 'newest' THEN a.action_id < @after
            WHEN 'expiry' THEN (a.approval_expires_at, a.action_id) > (@after_expiry::timestamptz, @after)
            WHEN 'risk' THEN (r.risk_rank, a.action_id) > (@after_risk::integer, @after)
            WHEN 'session' THEN (a.session_id IS NULL, CASE WHEN a.session_id IS NULL THEN '' ELSE a.session_id END COLLATE "C", a.action_id) > (@after_no_session::boolean, @after_session::text, @after)
            WHEN 'tool' THEN (a.source_id COLLATE "C", a.tool_name COLLATE "C", a.action_id) > (@after_source::text, @after_tool::text, @after)
            ELSE a.action_id > @after::uuid
        END
    ORDER BY
        CASE WHEN @sort = 'expiry' THEN a.approval_expires_at END,
        CASE WHEN @sort = 'risk' THEN r.risk_rank END,
        CASE WHEN @sort = 'session' THEN a.session_id IS NULL END,
        CASE WHEN @sort = 'session' THEN CASE WHEN a.session_id IS NULL THEN '' ELSE a.session_id END COLLATE "C" END,
        CASE WHEN @sort = 'tool' THEN a.source_id COLLATE "C" END,
        CASE WHEN @sort = 'tool' THEN a.tool_name COLLATE "C" END,
        CASE WHEN @sort = 'newest' THEN a.action_id END DESC,
        a.action_id
    LIMIT @most::bigint
)
UNION ALL
(
    SELECT
        'unknown'::text AS kind, l.action_id::uuid AS action_id, a.source_id, a.tool_name, coalesce(a.session_id, '')::text AS session_id, a.person, r.risk_rank::integer AS risk_rank,
        NULL::timestamptz AS expires_at, false AS escalated, l.created_at AS since, NULL::uuid AS workflow_id, l.code, l.message
    FROM dead_letters l
    JOIN actions a ON a.tenant_id = l.tenant_id AND a.action_id = l.action_id
    CROSS JOIN LATERAL (SELECT CASE a.risk WHEN 'high' THEN 1 WHEN 'medium' THEN 2 ELSE 3 END AS risk_rank) r
    WHERE 'unknown' = ANY (@kinds::text[]) AND @cohort::text = ''
        AND l.tenant_id = @tenant_id AND l.reason = 'unknown'
        AND (cardinality(@words::text[]) = 0 OR EXISTS (
            SELECT 1 FROM action_words x
            WHERE x.tenant_id = a.tenant_id AND x.action_id = a.action_id AND (x.words || x.people) @@ action_word_query(@words::text[], '')
        ))
        AND (sqlc.narg(source)::text IS NULL OR a.source_id = sqlc.narg(source))
        AND (sqlc.narg(tool)::text IS NULL OR a.tool_name = sqlc.narg(tool))
        AND (sqlc.narg(session)::text IS NULL OR a.session_id = sqlc.narg(session))
        AND (sqlc.narg(automation)::text IS NULL OR a.automation_id = sqlc.narg(automation))
        AND (sqlc.narg(person)::uuid IS NULL OR a.person = sqlc.narg(person))
        AND (cardinality(@risk_ranks::integer[]) = 0 OR r.risk_rank = ANY (@risk_ranks::integer[]))
        AND (sqlc.narg(escalated)::boolean IS NULL OR NOT sqlc.narg(escalated))
        AND sqlc.narg(expires_before)::timestamptz IS NULL
        AND CASE @sort::text
            WHEN 'newest' THEN l.action_id < @after
            WHEN 'expiry' THEN (timestamptz '9999-01-01 00:00:00+00', l.action_id) > (@after_expiry::timestamptz, @after)
            WHEN 'risk' THEN (r.risk_rank, l.action_id) > (@after_risk::integer, @after)
            WHEN 'session' THEN (a.session_id IS NULL, CASE WHEN a.session_id IS NULL THEN '' ELSE a.session_id END COLLATE "C", l.action_id) > (@after_no_session::boolean, @after_session::text, @after)
            WHEN 'tool' THEN (a.source_id COLLATE "C", a.tool_name COLLATE "C", l.action_id) > (@after_source::text, @after_tool::text, @after)
            ELSE l.action_id > @after::uuid
        END
    ORDER BY
        CASE WHEN @sort = 'risk' THEN r.risk_rank END,
        CASE WHEN @sort = 'session' THEN a.session_id IS NULL END,
        CASE WHEN @sort = 'session' THEN CASE WHEN a.session_id IS NULL THEN '' ELSE a.session_id END COLLATE "C" END,
        CASE WHEN @sort = 'tool' THEN a.source_id COLLATE "C" END,
        CASE WHEN @sort = 'tool' THEN a.tool_name COLLATE "C" END,
        CASE WHEN @sort = 'newest' THEN l.action_id END DESC,
        l.action_id
    LIMIT @most::bigint
)
UNION ALL
(
    SELECT
        'compensation'::text AS kind, s.action_id::uuid AS action_id, a.source_id, a.tool_name, coalesce(a.session_id, '')::text AS session_id, a.person, r.risk_rank::integer AS risk_rank,
        NULL::timestamptz AS expires_at, false AS escalated, w.updated_at AS since, s.workflow_id, s.code, s.message
    FROM workflows w
    JOIN workflow_steps s ON s.tenant_id = w.tenant_id AND s.workflow_id = w.workflow_id AND s.state = 'revert_failed'
    JOIN actions a ON a.tenant_id = s.tenant_id AND a.action_id = s.action_id
    CROSS JOIN LATERAL (SELECT CASE a.risk WHEN 'high' THEN 1 WHEN 'medium' THEN 2 ELSE 3 END AS risk_rank) r
    WHERE 'compensation' = ANY (@kinds::text[]) AND @cohort::text = ''
        AND w.tenant_id = @tenant_id AND w.state = 'compensation_failed'
        AND (cardinality(@words::text[]) = 0 OR EXISTS (
            SELECT 1 FROM action_words x
            WHERE x.tenant_id = a.tenant_id AND x.action_id = a.action_id AND (x.words || x.people) @@ action_word_query(@words::text[], '')
        ))
        AND (sqlc.narg(source)::text IS NULL OR a.source_id = sqlc.narg(source))
        AND (sqlc.narg(tool)::text IS NULL OR a.tool_name = sqlc.narg(tool))
        AND (sqlc.narg(session)::text IS NULL OR a.session_id = sqlc.narg(session))
        AND (sqlc.narg(automation)::text IS NULL OR a.automation_id = sqlc.narg(automation))
        AND (sqlc.narg(person)::uuid IS NULL OR a.person = sqlc.narg(person))
        AND (cardinality(@risk_ranks::integer[]) = 0 OR r.risk_rank = ANY (@risk_ranks::integer[]))
        AND (sqlc.narg(escalated)::boolean IS NULL OR NOT sqlc.narg(escalated))
        AND sqlc.narg(expires_before)::timestamptz IS NULL
        AND CASE @sort::text
            WHEN 'newest' THEN s.action_id < @after
            WHEN 'expiry' THEN (timestamptz '9999-01-01 00:00:00+00', s.action_id) > (@after_expiry::timestamptz, @after)
            WHEN 'risk' THEN (r.risk_rank, s.action_id) > (@after_risk::integer, @after)
            WHEN 'session' THEN (a.session_id IS NULL, CASE WHEN a.session_id IS NULL THEN '' ELSE a.session_id END COLLATE "C", s.action_id) > (@after_no_session::boolean, @after_session::text, @after)
            WHEN 'tool' THEN (a.source_id COLLATE "C", a.tool_name COLLATE "C", s.action_id) > (@after_source::text, @after_tool::text, @after)
            ELSE s.action_id > @after::uuid
        END
    ORDER BY
        CASE WHEN @sort = 'risk' THEN r.risk_rank END,
        CASE WHEN @sort = 'session' THEN a.session_id IS NULL END,
        CASE WHEN @sort = 'session' THEN CASE WHEN a.session_id IS NULL THEN '' ELSE a.session_id END COLLATE "C" END,
        CASE WHEN @sort = 'tool' THEN a.source_id COLLATE "C" END,
        CASE WHEN @sort = 'tool' THEN a.tool_name COLLATE "C" END,
        CASE WHEN @sort = 'newest' THEN s.action_id END DESC,
        s.action_id
    LIMIT @most::bigint
);

-- name: InboxKinds :many
-- The kinds of actions of triage that wait for approval, for counts. They are not part of
-- InboxItems, where they would change the planner's choice of an index. A tenant without
-- proposals of triage has one kind, and no action is read.
SELECT a.action_id, approval_kind(a.tenant_id, a.action_id, a.external_id, a.tool_name)::text AS kind
FROM actions a
WHERE a.tenant_id = @tenant_id AND a.action_id = ANY (@action_ids::uuid[]) AND a.external_id LIKE 'triage:%'
    AND EXISTS (SELECT FROM triage_proposals p WHERE p.tenant_id = @tenant_id);

-- name: InboxNotices :many
-- What triage did by itself and nobody has acknowledged, as InboxItems returns it.
-- Planning the view takes as long as planning all of InboxItems.
SELECT
    'notify'::text AS kind, a.action_id::uuid AS action_id, a.source_id, a.tool_name, coalesce(a.session_id, '')::text AS session_id, b.person, r.risk_rank::integer AS risk_rank,
    NULL::timestamptz AS expires_at, false AS escalated, b.created_at AS since, NULL::uuid AS workflow_id, NULL::text AS code, NULL::text AS message
FROM triage_proposals t
JOIN envelopes a ON a.tenant_id = t.tenant_id AND a.action_id = t.proposal_id
LEFT JOIN actions b ON b.tenant_id = t.tenant_id AND b.action_id = t.proposal_id
LEFT JOIN triage_decisions m ON m.tenant_id = t.tenant_id AND m.message_id = t.message_id
CROSS JOIN LATERAL (SELECT CASE a.risk WHEN 'high' THEN 1 WHEN 'medium' THEN 2 ELSE 3 END AS risk_rank) r
WHERE 'notify' = ANY (@kinds::text[]) AND (@cohort::text = '' OR m.cohort = @cohort::text)
    AND t.tenant_id = @tenant_id AND t.noticed_at IS NULL AND t.outcome IS NULL AND t.proposed_at > now() - interval '7 days'
    AND a.approval_state = 'auto' AND a.status IN ('sent', 'conflict')
    AND (cardinality(@words::text[]) = 0 OR EXISTS (
        SELECT 1 FROM action_words x
        WHERE x.tenant_id = a.tenant_id AND x.action_id = a.action_id AND (x.words || x.people) @@ action_word_query(@words::text[], '')
    ))
    AND (sqlc.narg(source)::text IS NULL OR a.source_id = sqlc.narg(source))
    AND (sqlc.narg(tool)::text IS NULL OR a.tool_name = sqlc.narg(tool))
    AND (sqlc.narg(session)::text IS NULL OR a.session_id = sqlc.narg(session))
    AND (sqlc.narg(automation)::text IS NULL OR a.automation_id = sqlc.narg(automation))
    AND (sqlc.narg(person)::uuid IS NULL OR b.person = sqlc.narg(person))
    AND (cardinality(@risk_ranks::integer[]) = 0 OR r.risk_rank = ANY (@risk_ranks::integer[]))
    AND (sqlc.narg(escalated)::boolean IS NULL OR NOT sqlc.narg(escalated))
    AND sqlc.narg(expires_before)::timestamptz IS NULL
    AND CASE @sort::text
        WHEN 'newest' THEN a.action_id < @after
        WHEN 'expiry' THEN (timestamptz '9999-01-01 00:00:00+00', a.action_id) > (@after_expiry::timestamptz, @after)
        WHEN 'risk' THEN (r.risk_rank, a.action_id) > (@after_risk::integer, @after)
        WHEN 'session' THEN (a.session_id IS NULL, CASE WHEN a.session_id IS NULL THEN '' ELSE a.session_id END COLLATE "C", a.action_id) > (@after_no_session::boolean, @after_session::text, @after)
        WHEN 'tool' THEN (a.source_id COLLATE "C", a.tool_name COLLATE "C", a.action_id) > (@after_source::text, @after_tool::text, @after)
        ELSE a.action_id > @after::uuid
    END
ORDER BY
    CASE WHEN @sort = 'risk' THEN r.risk_rank END,
    CASE WHEN @sort = 'session' THEN a.session_id IS NULL END,
    CASE WHEN @sort = 'session' THEN CASE WHEN a.session_id IS NULL THEN '' ELSE a.session_id END COLLATE "C" END,
    CASE WHEN @sort = 'tool' THEN a.source_id COLLATE "C" END,
    CASE WHEN @sort = 'tool' THEN a.tool_name COLLATE "C" END,
    CASE WHEN @sort = 'newest' THEN a.action_id END DESC,
    a.action_id
LIMIT @most::bigint;

-- name: InboxPeople :many
-- The names of people, or of tokens that belong to no person.
SELECT w.proposer_id::uuid AS person, w.name::text AS name FROM proposers w
WHERE w.tenant_id = @tenant_id AND w.proposer_id = ANY (@people::uuid[]);

-- name: InboxNoticed :execrows
-- Acknowledges what triage did by itself. What waits for a person, was approved by
-- one, or was acknowledged, is left.
UPDATE triage_proposals t
SET noticed_at = now()
FROM envelopes a
WHERE t.tenant_id = @tenant_id AND t.proposal_id = ANY (@action_ids::uuid[]) AND t.noticed_at IS NULL
    AND a.tenant_id = t.tenant_id AND a.action_id = t.proposal_id AND a.approval_state = 'auto' AND a.status IN ('sent', 'conflict');
