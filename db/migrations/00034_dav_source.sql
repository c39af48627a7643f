-- +goose Up

ALTER TABLE sources DROP CONSTRAINT sources_kind_check;
ALTER TABLE sources ADD CONSTRAINT sources_kind_check
    CHECK (kind IN ('mcp', 'builtin', 'tool_gateway', 'composio', 'slack', 'linear', 'sentry', 'webhook', 'mail', 'dav'));
