-- +goose Up

-- Sources of kind mail, and the reversals that adapters declare for their tools.
ALTER TABLE sources DROP CONSTRAINT sources_kind_check;
ALTER TABLE sources ADD CONSTRAINT sources_kind_check
    CHECK (kind IN ('mcp', 'builtin', 'tool_gateway', 'composio', 'slack', 'linear', 'sentry', 'webhook', 'mail'));

ALTER TABLE tools ADD COLUMN default_reversal jsonb;
COMMENT ON COLUMN tools.reversal IS 'How to revert a call, as an operator set it: {tool, args} of a call of another tool; NULL if none did.';
COMMENT ON COLUMN tools.default_reversal IS 'How to revert a call, as the adapter declares it; it holds while reversal is NULL. NULL if the adapter declares none.';
DROP TRIGGER tools_bump_update ON tools;
CREATE TRIGGER tools_bump_update AFTER UPDATE ON tools FOR EACH ROW
    WHEN ((OLD.effect, OLD.digest, OLD.accepted_digest, OLD.risk_override, OLD.effect_override, OLD.max_attempts, OLD.input_schema, OLD.output_schema, OLD.hints,
            OLD.recipients, OLD.scopes, OLD.retry_base_seconds, OLD.retry_cap_seconds, OLD.retry_jitter, OLD.retry_max_attempts, OLD.timeout_seconds,
            OLD.gone_at, OLD.module, OLD.entity, OLD.action, OLD.side_effects, OLD.reversal, OLD.default_reversal)
        IS DISTINCT FROM (NEW.effect, NEW.digest, NEW.accepted_digest, NEW.risk_override, NEW.effect_override, NEW.max_attempts, NEW.input_schema, NEW.output_schema, NEW.hints,
            NEW.recipients, NEW.scopes, NEW.retry_base_seconds, NEW.retry_cap_seconds, NEW.retry_jitter, NEW.retry_max_attempts, NEW.timeout_seconds,
            NEW.gone_at, NEW.module, NEW.entity, NEW.action, NEW.side_effects, NEW.reversal, NEW.default_reversal))
    EXECUTE FUNCTION bump_config_version_row();
