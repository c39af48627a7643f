-- +goose Up

-- Pauses of automations, among them triage and each of its mail accounts, and
-- travelling.
ALTER TABLE pauses
    ADD COLUMN travelling boolean NOT NULL DEFAULT false,
    DROP CONSTRAINT pauses_scope_check,
    ADD CONSTRAINT pauses_scope_check CHECK (scope IN ('everything', 'tenant', 'employee', 'source', 'bucket', 'tool', 'automation')),
    ADD CONSTRAINT pauses_travelling_check CHECK (NOT travelling OR scope = 'automation' AND NOT kill);
COMMENT ON COLUMN pauses.subject IS 'Employee id, source id, bucket name, source:tool, or the name of an automation: triage, triage/account, or an automation_id; empty for the scopes everything and tenant.';
COMMENT ON COLUMN pauses.travelling IS 'Holds only actions that no person approved, and keeps triage at level L2.';
DROP TRIGGER pauses_bump_update ON pauses;
CREATE TRIGGER pauses_bump_update AFTER UPDATE ON pauses FOR EACH ROW
    WHEN ((OLD.kill, OLD.killed_at, OLD.lifted_at, OLD.travelling) IS DISTINCT FROM (NEW.kill, NEW.killed_at, NEW.lifted_at, NEW.travelling))
    EXECUTE FUNCTION bump_config_version_row();

-- Workers of the version before call this one: for them a pause of an automation
-- covers nothing.
CREATE OR REPLACE FUNCTION pause_covers(scope text, subject text, employee uuid, source text, tool text, bucket text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE scope
    WHEN 'employee' THEN employee::text = subject
    WHEN 'source' THEN source = subject
    WHEN 'tool' THEN source || ':' || tool = subject
    WHEN 'bucket' THEN bucket = subject
    WHEN 'automation' THEN false
    ELSE true
END;

-- triage_automation returns the automation of an action that triage proposed;
-- NULL for any other action.
CREATE FUNCTION triage_automation(tenant uuid, external_id text) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN external_id LIKE 'triage:%' THEN (
    SELECT 'triage/' || a.name
    FROM triage_proposals p
    JOIN triage_accounts a ON a.tenant_id = p.tenant_id AND a.account_id = p.account_id
    WHERE p.tenant_id = tenant AND p.external_id = triage_automation.external_id
) END;

-- automation_covers reports whether a pause of an automation applies to an action.
CREATE FUNCTION automation_covers(subject text, tenant uuid, automation text, external_id text) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
RETURN coalesce(automation = subject, false)
    OR coalesce(CASE WHEN subject = 'triage' THEN triage_automation(tenant, external_id) IS NOT NULL ELSE triage_automation(tenant, external_id) = subject END, false);

-- automation_proposed_at returns when an action was proposed: by triage, before
-- it became an action.
CREATE FUNCTION automation_proposed_at(tenant uuid, external_id text, created timestamptz) RETURNS timestamptz
    LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN external_id LIKE 'triage:%' THEN coalesce((
    SELECT p.proposed_at FROM triage_proposals p WHERE p.tenant_id = tenant AND p.external_id = automation_proposed_at.external_id
), created) ELSE created END;

-- triage_pause returns how a mail account is paused: paused, travelling, or ''.
CREATE FUNCTION triage_pause(tenant uuid, account uuid) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
RETURN coalesce((
    SELECT CASE WHEN bool_or(NOT p.travelling) THEN 'paused' ELSE 'travelling' END
    FROM pauses p
    WHERE p.lifted_at IS NULL AND (p.scope = 'everything' AND p.tenant_id IS NULL OR p.tenant_id = tenant AND (p.scope = 'tenant'
        OR p.scope = 'automation' AND p.subject IN ('triage', (
            SELECT 'triage/' || a.name FROM triage_accounts a WHERE a.tenant_id = tenant AND a.account_id = account))))
    HAVING count(1) > 0
), '');

ALTER FUNCTION triage_automation(uuid, text) OWNER TO countersign_owner;
ALTER FUNCTION automation_covers(text, uuid, text, text) OWNER TO countersign_owner;
ALTER FUNCTION automation_proposed_at(uuid, text, timestamptz) OWNER TO countersign_owner;
ALTER FUNCTION triage_pause(uuid, uuid) OWNER TO countersign_owner;
REVOKE EXECUTE ON FUNCTION triage_automation(uuid, text), automation_covers(text, uuid, text, text),
    automation_proposed_at(uuid, text, timestamptz), triage_pause(uuid, uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION triage_automation(uuid, text), automation_covers(text, uuid, text, text),
    automation_proposed_at(uuid, text, timestamptz) TO countersign_worker;
GRANT EXECUTE ON FUNCTION triage_pause(uuid, uuid) TO countersign_triage, countersign_api;

-- Triage reads the pauses that apply to it, without their reasons and authors.
GRANT SELECT (tenant_id, scope, subject, travelling, lifted_at) ON pauses TO countersign_triage;
CREATE POLICY pauses_triage ON pauses FOR SELECT TO countersign_triage USING (
    (tenant_id = (SELECT triage_tenant()) OR tenant_id IS NULL) AND scope IN ('everything', 'tenant', 'automation'));
-- A worker finds the account of an action of triage, and nothing else of it.
GRANT SELECT (account_id, proposed_at) ON triage_proposals TO countersign_worker;
GRANT SELECT (tenant_id, account_id, name) ON triage_accounts TO countersign_worker;
CREATE POLICY triage_accounts_worker ON triage_accounts FOR SELECT TO countersign_worker USING (true);
