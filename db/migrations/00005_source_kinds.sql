-- +goose Up

-- Sources that speak a provider's own API, beside MCP servers and the tools
-- that come along.
ALTER TABLE sources
    DROP CONSTRAINT sources_kind_check,
    ADD CONSTRAINT sources_kind_check
        CHECK (kind IN ('mcp', 'builtin', 'tool_gateway', 'composio', 'slack', 'linear', 'sentry'));
COMMENT ON COLUMN sources.secret IS 'Header values, environment values and named credentials, sealed with AES-256-GCM. Opened only in the worker.';
