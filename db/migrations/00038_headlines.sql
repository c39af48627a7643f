-- +goose Up

-- The order in which a source lists the arguments of a tool, and the headline of its
-- calls as people wrote it.
ALTER TABLE tools
    ADD COLUMN ordered_schema json,
    ADD COLUMN headline text CONSTRAINT tools_headline_check CHECK (char_length(headline) <= 200),
    ADD COLUMN headline_digest bytea,
    ADD CONSTRAINT tools_headline_digest_check CHECK ((headline IS NULL) = (headline_digest IS NULL));
COMMENT ON COLUMN tools.ordered_schema IS 'input_schema with its members in the order of the source, which jsonb does not keep; NULL until the next listing.';
COMMENT ON COLUMN tools.headline IS 'Template of one line about a call; NULL while it is inferred from the arguments.';
COMMENT ON COLUMN tools.headline_digest IS 'Digest of the definition that headline was written for: with another one, headline does not hold.';
DROP TRIGGER tools_bump_update ON tools;
CREATE TRIGGER tools_bump_update AFTER UPDATE ON tools FOR EACH ROW
    WHEN ((OLD.effect, OLD.digest, OLD.accepted_digest, OLD.risk_override, OLD.effect_override, OLD.max_attempts, OLD.input_schema, OLD.output_schema, OLD.hints,
            OLD.recipients, OLD.scopes, OLD.retry_base_seconds, OLD.retry_cap_seconds, OLD.retry_jitter, OLD.retry_max_attempts, OLD.timeout_seconds,
            OLD.gone_at, OLD.module, OLD.entity, OLD.action, OLD.side_effects, OLD.reversal, OLD.default_reversal, OLD.headline, OLD.ordered_schema::text)
        IS DISTINCT FROM (NEW.effect, NEW.digest, NEW.accepted_digest, NEW.risk_override, NEW.effect_override, NEW.max_attempts, NEW.input_schema, NEW.output_schema, NEW.hints,
            NEW.recipients, NEW.scopes, NEW.retry_base_seconds, NEW.retry_cap_seconds, NEW.retry_jitter, NEW.retry_max_attempts, NEW.timeout_seconds,
            NEW.gone_at, NEW.module, NEW.entity, NEW.action, NEW.side_effects, NEW.reversal, NEW.default_reversal, NEW.headline, NEW.ordered_schema::text))
    EXECUTE FUNCTION bump_config_version_row();
