-- +goose Up

-- What an operator accepted of a tool is kept as a definition, so that it can
-- be compared with what the source lists now; and a tool that a source lists
-- no more is kept too: else its coming back would be its first appearance,
-- and what operators said of it would be lost.
ALTER TABLE sources
    ADD COLUMN drift_guard text NOT NULL DEFAULT 'full' CONSTRAINT sources_drift_guard_check CHECK (drift_guard IN ('full', 'interface')),
    ADD COLUMN quarantine boolean NOT NULL DEFAULT false,
    ADD COLUMN known_at timestamptz,
    ADD COLUMN left_out integer NOT NULL DEFAULT 0,
    ADD COLUMN refresh_asked_at timestamptz;
COMMENT ON COLUMN sources.drift_guard IS 'Which changes of its tools'' definitions need a person: full is any, interface leaves out texts that only describe.';
COMMENT ON COLUMN sources.quarantine IS 'Its new tools may not be used before an operator accepts them. Those of its first listing are accepted as they are.';
COMMENT ON COLUMN sources.known_at IS 'When it was first listed with success; NULL before.';
COMMENT ON COLUMN sources.left_out IS 'How many tools the last listing left out, since no envelope could name them or their definitions cannot be read.';
COMMENT ON COLUMN sources.refresh_asked_at IS 'When somebody asked for a listing out of turn. It is due while this is later than listed_at.';

ALTER TABLE tools
    ADD COLUMN accepted jsonb,
    ADD COLUMN gone_at timestamptz,
    ADD COLUMN retry_max_attempts integer CONSTRAINT tools_retry_max_attempts_check CHECK (retry_max_attempts BETWEEN 1 AND 100),
    ADD COLUMN module text,
    ADD COLUMN entity text,
    ADD COLUMN action text,
    ADD COLUMN side_effects text[],
    ADD COLUMN reversal jsonb,
    ADD CONSTRAINT tools_words_check CHECK (
        module ~ '^[a-z0-9][a-z0-9_-]{0,99}$' AND entity ~ '^[a-z0-9][a-z0-9_-]{0,99}$' AND action ~ '^[a-z0-9][a-z0-9_-]{0,99}$');
COMMENT ON COLUMN tools.accepted IS 'The definition that accepted_digest is of; NULL where it was accepted before definitions were kept and has changed since.';
COMMENT ON COLUMN tools.accepted_digest IS 'Of the definition that an operator accepted, or that was the first to be seen; NULL for a new tool in quarantine. While it differs from digest, allow becomes require_approval.';
COMMENT ON COLUMN tools.gone_at IS 'Since when its source lists it no more; NULL while it does. It cannot be used, and what was said of it waits for its return.';
COMMENT ON COLUMN tools.max_attempts IS 'By the overrides. retry_max_attempts, by the rule of its retries, comes before it.';
COMMENT ON COLUMN tools.module IS 'The first word of its name module.entity.action, and with it entity and action; NULL while they are inferred.';
COMMENT ON COLUMN tools.side_effects IS 'What a call changes, in an operator''s words; NULL while it is inferred.';
COMMENT ON COLUMN tools.reversal IS 'How a call is undone: {tool, args}, of a call of another tool. NULL if nobody said how.';

UPDATE sources s SET known_at = s.created_at
WHERE EXISTS (SELECT FROM tools t WHERE t.tenant_id = s.tenant_id AND t.source_id = s.source_id);
-- Where a rule says more than the number of attempts, the number was its.
UPDATE tools SET retry_max_attempts = max_attempts, max_attempts = NULL
WHERE max_attempts IS NOT NULL
    AND (retry_base_seconds IS NOT NULL OR retry_cap_seconds IS NOT NULL OR retry_jitter IS NOT NULL OR recipients IS NOT NULL OR scopes <> '{}');
UPDATE tools
SET accepted = jsonb_build_object('title', title, 'description', description, 'input_schema', input_schema, 'output_schema', output_schema, 'hints', hints)
WHERE accepted_digest = digest;

DROP TRIGGER sources_bump_update ON sources;
CREATE TRIGGER sources_bump_update AFTER UPDATE ON sources FOR EACH ROW
    WHEN ((OLD.kind, OLD.config, OLD.secret, OLD.default_risk, OLD.enabled, OLD.drift_guard, OLD.quarantine, OLD.list_error)
        IS DISTINCT FROM (NEW.kind, NEW.config, NEW.secret, NEW.default_risk, NEW.enabled, NEW.drift_guard, NEW.quarantine, NEW.list_error))
    EXECUTE FUNCTION bump_config_version_row();
DROP TRIGGER tools_bump_update ON tools;
CREATE TRIGGER tools_bump_update AFTER UPDATE ON tools FOR EACH ROW
    WHEN ((OLD.effect, OLD.digest, OLD.accepted_digest, OLD.risk_override, OLD.effect_override, OLD.max_attempts, OLD.input_schema, OLD.output_schema, OLD.hints,
            OLD.recipients, OLD.scopes, OLD.retry_base_seconds, OLD.retry_cap_seconds, OLD.retry_jitter, OLD.retry_max_attempts,
            OLD.gone_at, OLD.module, OLD.entity, OLD.action, OLD.side_effects, OLD.reversal)
        IS DISTINCT FROM (NEW.effect, NEW.digest, NEW.accepted_digest, NEW.risk_override, NEW.effect_override, NEW.max_attempts, NEW.input_schema, NEW.output_schema, NEW.hints,
            NEW.recipients, NEW.scopes, NEW.retry_base_seconds, NEW.retry_cap_seconds, NEW.retry_jitter, NEW.retry_max_attempts,
            NEW.gone_at, NEW.module, NEW.entity, NEW.action, NEW.side_effects, NEW.reversal))
    EXECUTE FUNCTION bump_config_version_row();
