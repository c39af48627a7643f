-- +goose Up

-- Few tools have rules of people: a list of tools reads these, and not every tool.
CREATE INDEX tools_ruled ON tools (tenant_id, source_id, name)
    WHERE recipients IS NOT NULL OR scopes <> '{}' OR retry_max_attempts IS NOT NULL OR retry_base_seconds IS NOT NULL OR retry_cap_seconds IS NOT NULL
        OR retry_jitter IS NOT NULL OR timeout_seconds IS NOT NULL;
