-- +goose Up

-- The list of actions that wait for approval, grouped by session and by tool. Without a
-- session is last. The collation is the order of bytes, which the API and the page compare
-- by. The expressions are leakproof (coalesce is not), so that row-level security leaves
-- them to the index.
CREATE INDEX actions_inbox_session ON actions (tenant_id, (session_id IS NULL), (CASE WHEN session_id IS NULL THEN '' ELSE session_id END) COLLATE "C", action_id)
    WHERE approval_state = 'required';
CREATE INDEX actions_inbox_tool ON actions (tenant_id, source_id COLLATE "C", tool_name COLLATE "C", action_id)
    WHERE approval_state = 'required';
-- The list of before, with one column more to filter by.
DROP INDEX actions_inbox;
CREATE INDEX actions_inbox ON actions (tenant_id, action_id) INCLUDE (source_id, tool_name, session_id, automation_id, risk, approval_expires_at, person)
    WHERE approval_state = 'required';
