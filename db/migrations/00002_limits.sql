-- +goose Up

-- What holds for a whole tenant.
ALTER TABLE tenants
    ADD COLUMN timezone text NOT NULL DEFAULT 'UTC',
    ADD COLUMN phone_region text NOT NULL DEFAULT '',
    ADD COLUMN plus_addressing boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN tenants.timezone IS 'An IANA name. Calendar buckets without a zone of their own begin anew at its midnight.';
COMMENT ON COLUMN tenants.phone_region IS 'The country, in two letters, whose numbers are written without a country code; empty for none.';
COMMENT ON COLUMN tenants.plus_addressing IS 'a+anything@b is the same recipient as a@b.';

-- The limits of a bucket, and how much of them is used. Only the claim moves
-- tat, granted_at and calendar_*, under the row's lock and by the database's clock.
ALTER TABLE buckets
    ADD COLUMN rate_limit integer,
    ADD COLUMN rate_seconds float8,
    ADD COLUMN burst integer,
    ADD COLUMN calendar text,
    ADD COLUMN calendar_limit integer,
    ADD COLUMN timezone text,
    ADD COLUMN concurrency integer,
    ADD COLUMN limited boolean NOT NULL DEFAULT false,
    ADD COLUMN tat timestamptz,
    ADD COLUMN granted_at timestamptz,
    ADD COLUMN calendar_from timestamptz,
    ADD COLUMN calendar_used integer NOT NULL DEFAULT 0,
    ADD COLUMN opens_at timestamptz,
    ADD COLUMN closed_by text,
    ADD COLUMN retired_at timestamptz,
    ADD COLUMN updated_at timestamptz NOT NULL DEFAULT now(),
    ADD CONSTRAINT buckets_name_check CHECK (name ~ '^[a-z0-9][a-z0-9_.-]{0,99}$') NOT VALID,
    ADD CONSTRAINT buckets_rate_check CHECK (
        (rate_limit IS NULL AND rate_seconds IS NULL AND burst IS NULL)
        OR (rate_limit BETWEEN 1 AND 1000000 AND rate_seconds BETWEEN 0.001 AND 31622400 AND burst BETWEEN 1 AND 1000000)),
    ADD CONSTRAINT buckets_calendar_check CHECK (
        (calendar IS NULL AND calendar_limit IS NULL)
        OR (calendar IN ('hour', 'day', 'week', 'month') AND calendar_limit BETWEEN 1 AND 1000000000)),
    ADD CONSTRAINT buckets_concurrency_check CHECK (concurrency BETWEEN 1 AND 100000);
ALTER TABLE buckets SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
COMMENT ON COLUMN buckets.limited IS 'It has a limit of any kind: its row is locked by a claim. Kept by a trigger.';
COMMENT ON COLUMN buckets.tat IS 'GCRA: the theoretical arrival time of the next token; NULL or past when the bucket is full.';
COMMENT ON COLUMN buckets.granted_at IS 'When it gave last. Only of that grant can tokens be given back to the rate.';
COMMENT ON COLUMN buckets.calendar_from IS 'The begin of the hour, day, week or month that calendar_used counts in.';
COMMENT ON COLUMN buckets.opens_at IS 'Nothing is claimed before then: the latest of closed_until, the next token and the next calendar period. Kept by a trigger; NULL when open.';
COMMENT ON COLUMN buckets.closed_by IS 'Why closed_until is set, in one word.';
COMMENT ON COLUMN buckets.updated_at IS 'When its limits were changed last. Kept by a trigger; tokens granted before are not given back.';
COMMENT ON COLUMN buckets.retired_at IS 'New envelopes may no longer name it. The row stays for those that are in it.';

-- Every tenant has the bucket that holds what names no other.
INSERT INTO buckets (tenant_id, name) SELECT t.tenant_id, 'default' FROM tenants t ON CONFLICT ON CONSTRAINT buckets_tenant_id_name_key DO NOTHING;
-- +goose StatementBegin
CREATE FUNCTION tenant_gets_default_bucket() RETURNS trigger
    LANGUAGE plpgsql SET search_path = public, pg_temp
AS $$
BEGIN
    INSERT INTO buckets (tenant_id, name) VALUES (NEW.tenant_id, 'default');
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER tenants_default_bucket AFTER INSERT ON tenants FOR EACH ROW EXECUTE FUNCTION tenant_gets_default_bucket();

-- How far apart tokens are: never less than the limit says, so rounded up to
-- what the clock can tell apart.
CREATE FUNCTION bucket_interval(b buckets) RETURNS interval
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN make_interval(secs => ceil(b.rate_seconds / b.rate_limit * 1000000) / 1000000);

-- When the calendar period of a bucket begins that a time falls into.
-- +goose StatementBegin
CREATE FUNCTION bucket_period(b buckets, at timestamptz, tenant_timezone text) RETURNS timestamptz
    LANGUAGE sql STABLE PARALLEL SAFE
RETURN date_trunc(b.calendar, at AT TIME ZONE coalesce(b.timezone, tenant_timezone)) AT TIME ZONE coalesce(b.timezone, tenant_timezone);
-- +goose StatementEnd

-- How many envelopes a bucket may give at a time, by rate and calendar; a
-- large number where neither limits it. A calendar period that lies behind
-- the one that was counted in (the clock went back) counts on.
-- +goose StatementBegin
CREATE FUNCTION bucket_tokens(b buckets, at timestamptz, tenant_timezone text) RETURNS bigint
    LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN b.closed_until > at THEN 0 ELSE greatest(0, least(
    CASE
        WHEN b.rate_limit IS NULL THEN 1000000000
        ELSE least(b.burst::bigint, floor(extract(epoch FROM at + b.burst * bucket_interval(b) - greatest(b.tat, at)) / extract(epoch FROM bucket_interval(b)))::bigint)
    END,
    CASE
        WHEN b.calendar IS NULL THEN 1000000000
        WHEN b.calendar_from >= bucket_period(b, at, tenant_timezone) THEN b.calendar_limit - b.calendar_used
        ELSE b.calendar_limit
    END)) END;
-- +goose StatementEnd

-- Keeps limited and opens_at, so that a look and a claim need no arithmetic,
-- and an exhausted bucket costs them nothing. Limits that change take effect
-- at once: what an old rate reserved ahead is cut to what the new one would.
-- +goose StatementBegin
CREATE FUNCTION bucket_derive() RETURNS trigger
    LANGUAGE plpgsql SET search_path = public, pg_temp
AS $$
DECLARE
    zone text;
BEGIN
    NEW.limited := NEW.rate_limit IS NOT NULL OR NEW.calendar IS NOT NULL OR NEW.concurrency IS NOT NULL;
    IF TG_OP = 'UPDATE' AND (OLD.rate_limit, OLD.rate_seconds, OLD.burst, OLD.calendar, OLD.calendar_limit, OLD.timezone)
        IS DISTINCT FROM (NEW.rate_limit, NEW.rate_seconds, NEW.burst, NEW.calendar, NEW.calendar_limit, NEW.timezone) THEN
        NEW.updated_at := clock_timestamp();
        IF NEW.tat IS NOT NULL THEN
            NEW.tat := least(NEW.tat, clock_timestamp() + NEW.burst * bucket_interval(NEW));
        END IF;
    END IF;
    NEW.opens_at := NEW.closed_until;
    IF NEW.rate_limit IS NOT NULL THEN
        NEW.opens_at := greatest(NEW.opens_at, NEW.tat - (NEW.burst - 1) * bucket_interval(NEW));
    END IF;
    IF NEW.calendar IS NOT NULL AND NEW.calendar_used >= NEW.calendar_limit THEN
        SELECT coalesce(NEW.timezone, t.timezone) INTO zone FROM tenants t WHERE t.tenant_id = NEW.tenant_id;
        NEW.opens_at := greatest(NEW.opens_at, (date_trunc(NEW.calendar, NEW.calendar_from AT TIME ZONE zone) + ('1 ' || NEW.calendar)::interval) AT TIME ZONE zone);
    END IF;
    RETURN NEW;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER buckets_derive BEFORE INSERT OR UPDATE ON buckets FOR EACH ROW EXECUTE FUNCTION bucket_derive();

-- What an outbox row waits for, and whether it holds one of its bucket's
-- places. Only rows of buckets with a ceiling are ever held, so the index
-- costs the others nothing.
ALTER TABLE outbox
    ADD COLUMN held boolean NOT NULL DEFAULT false,
    ADD COLUMN waits_for text;
CREATE INDEX outbox_held ON outbox (bucket_id) WHERE held;
COMMENT ON COLUMN outbox.held IS 'It was claimed from a bucket with a ceiling, and counts towards it while its lease lasts.';
COMMENT ON COLUMN outbox.waits_for IS 'Why it was put back, in one word: retry, quiet_hours, paused, breaker_open, …; NULL for one that was not.';

ALTER TABLE actions ADD COLUMN urgent boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN actions.urgent IS 'The agent asks to go out in quiet hours too. It takes effect only for an employee with the scope quiet_hours:override.';

-- What an operator says about a tool, beside its overrides.
ALTER TABLE tools
    ADD COLUMN recipients text[],
    ADD COLUMN scopes text[] NOT NULL DEFAULT '{}',
    ADD COLUMN retry_base_seconds float8,
    ADD COLUMN retry_cap_seconds float8,
    ADD COLUMN retry_jitter float8,
    ADD CONSTRAINT tools_retry_check CHECK (
        retry_base_seconds BETWEEN 0.001 AND 86400 AND retry_cap_seconds BETWEEN 0.001 AND 604800 AND retry_jitter BETWEEN 0 AND 1);
COMMENT ON COLUMN tools.recipients IS 'JSON Pointer patterns to whom the arguments address; NULL while they are guessed from the schema.';
COMMENT ON COLUMN tools.scopes IS 'What an employee must have to use it.';

-- Weekly times in which nothing is sent.
CREATE TABLE quiet_hours (
    tenant_id      uuid        NOT NULL CONSTRAINT quiet_hours_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    scope          text        NOT NULL CONSTRAINT quiet_hours_scope_check CHECK (scope IN ('tenant', 'employee', 'bucket', 'recipient')),
    subject        text        NOT NULL DEFAULT '',
    timezone       text        NOT NULL,
    windows        jsonb       NOT NULL,
    spread_seconds float8      NOT NULL DEFAULT 300 CONSTRAINT quiet_hours_spread_seconds_check CHECK (spread_seconds BETWEEN 0 AND 86400),
    updated_at     timestamptz NOT NULL DEFAULT now(),
    updated_by     text        NOT NULL DEFAULT '',
    CONSTRAINT quiet_hours_pkey PRIMARY KEY (tenant_id, scope, subject)
);
COMMENT ON COLUMN quiet_hours.subject IS 'The employee''s id, the bucket''s name, or the recipient as kind:value; empty for the tenant.';

-- Whom nobody may write to.
CREATE TABLE do_not_contact (
    tenant_id  uuid        NOT NULL CONSTRAINT do_not_contact_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    kind       text        NOT NULL CONSTRAINT do_not_contact_kind_check CHECK (kind IN ('email', 'domain', 'phone', 'handle')),
    value      text        NOT NULL,
    bare       text        NOT NULL,
    reason     text        NOT NULL DEFAULT '',
    source     text        NOT NULL DEFAULT '',
    expires_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text        NOT NULL DEFAULT '',
    CONSTRAINT do_not_contact_pkey PRIMARY KEY (tenant_id, kind, value)
);
CREATE INDEX do_not_contact_bare ON do_not_contact (tenant_id, kind, bare);
COMMENT ON COLUMN do_not_contact.value IS 'Normalised as recipients are.';
COMMENT ON COLUMN do_not_contact.bare IS 'The value without what plus-addressing adds.';

-- Agents' identities: how far each is trusted, and what it may do.
CREATE TABLE employees (
    tenant_id   uuid        NOT NULL CONSTRAINT employees_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    employee_id uuid        NOT NULL,
    name        text        NOT NULL DEFAULT '',
    trust       text        NOT NULL CONSTRAINT employees_trust_check CHECK (trust IN ('none', 'low', 'medium', 'high')),
    scopes      text[]      NOT NULL DEFAULT '{}',
    updated_at  timestamptz NOT NULL DEFAULT now(),
    updated_by  text        NOT NULL DEFAULT '',
    CONSTRAINT employees_pkey PRIMARY KEY (tenant_id, employee_id)
);
COMMENT ON COLUMN employees.employee_id IS 'The zero UUID is the entry for everyone who has none, and for envelopes that name nobody.';
COMMENT ON COLUMN employees.trust IS 'The highest risk that may run without a person.';

-- What is paused, and what was. A kill also ends what was pending.
CREATE TABLE pauses (
    pause_id  uuid        NOT NULL CONSTRAINT pauses_pkey PRIMARY KEY,
    tenant_id uuid        CONSTRAINT pauses_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    scope     text        NOT NULL CONSTRAINT pauses_scope_check CHECK (scope IN ('everything', 'tenant', 'employee', 'source', 'bucket', 'tool')),
    subject   text        NOT NULL DEFAULT '',
    kill      boolean     NOT NULL DEFAULT false,
    reason    text        NOT NULL CONSTRAINT pauses_reason_check CHECK (reason <> ''),
    paused_at timestamptz NOT NULL DEFAULT now(),
    paused_by text        NOT NULL,
    killed_at timestamptz,
    txid      xid8        NOT NULL DEFAULT pg_current_xact_id(),
    cancelled integer     NOT NULL DEFAULT 0,
    swept_at  timestamptz,
    lifted_at timestamptz,
    lifted_by text,
    woken_at  timestamptz,
    CONSTRAINT pauses_everything_check CHECK ((scope = 'everything') = (tenant_id IS NULL)),
    CONSTRAINT pauses_subject_check CHECK ((scope IN ('everything', 'tenant')) = (subject = ''))
);
CREATE UNIQUE INDEX pauses_standing_key ON pauses (tenant_id, scope, subject) NULLS NOT DISTINCT WHERE lifted_at IS NULL;
CREATE INDEX pauses_unfinished ON pauses (paused_at) WHERE kill AND swept_at IS NULL OR lifted_at IS NOT NULL AND woken_at IS NULL;
COMMENT ON COLUMN pauses.tenant_id IS 'NULL for a pause of everything, which only the fleet''s own operator sets.';
COMMENT ON COLUMN pauses.subject IS 'The employee''s id, the source''s id, the bucket''s name, or source:tool.';
COMMENT ON COLUMN pauses.killed_at IS 'What was proposed up to then is ended.';
COMMENT ON COLUMN pauses.txid IS 'Of the pause or, since, of the kill. What began before may yet commit an envelope that the kill hits.';
COMMENT ON COLUMN pauses.swept_at IS 'All that the kill hit has ended.';
COMMENT ON COLUMN pauses.woken_at IS 'All that the lifted pause held is on the schedule again.';

-- Whether nothing of a bucket may be claimed now. Pauses of an employee, a
-- source or a tool are the judge's matter, envelope by envelope.
-- +goose StatementBegin
CREATE FUNCTION bucket_paused(tenant uuid, bucket text) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
RETURN EXISTS (
    SELECT FROM pauses p
    WHERE p.lifted_at IS NULL AND (p.scope = 'everything' OR p.tenant_id = tenant AND (p.scope = 'tenant' OR p.scope = 'bucket' AND p.subject = bucket)));
-- +goose StatementEnd

-- Whether a pause of a tenant's, or of everything, is about an envelope.
-- +goose StatementBegin
CREATE FUNCTION pause_covers(scope text, subject text, employee uuid, source text, tool text, bucket text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE scope
    WHEN 'employee' THEN employee::text = subject
    WHEN 'source' THEN source = subject
    WHEN 'tool' THEN source || ':' || tool = subject
    WHEN 'bucket' THEN bucket = subject
    ELSE true
END;
-- +goose StatementEnd

-- Sources that are left alone for a while, as the fleet agrees on it. A row
-- comes when the first breaker opens or a provider asks for time.
CREATE TABLE breakers (
    tenant_id  uuid        NOT NULL,
    source_id  text        NOT NULL,
    state      text        NOT NULL CONSTRAINT breakers_state_check CHECK (state IN ('closed', 'open', 'half-open')),
    cause      text        NOT NULL,
    since      timestamptz NOT NULL DEFAULT now(),
    open_until timestamptz NOT NULL,
    trips      integer     NOT NULL DEFAULT 1,
    worker     text        NOT NULL,
    CONSTRAINT breakers_pkey PRIMARY KEY (tenant_id, source_id),
    CONSTRAINT breakers_source_id_fkey FOREIGN KEY (tenant_id, source_id) REFERENCES sources (tenant_id, source_id) ON DELETE CASCADE
);
COMMENT ON COLUMN breakers.open_until IS 'While open: when a probe may be made. While half-open: when the worker that makes it counts as gone.';
COMMENT ON COLUMN breakers.trips IS 'Openings without a closing between.';

-- What waits for a reason that may be gone by now, and is to be put on the
-- schedule again. The worker's sweep does it, a page at a time, so that no
-- change of a setting has to touch a million rows.
CREATE TABLE wakes (
    tenant_id uuid        NOT NULL,
    waits_for text        NOT NULL,
    asked_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT wakes_pkey PRIMARY KEY (tenant_id, waits_for)
);

-- Quiet hours that change may end sooner for what waits.
-- +goose StatementBegin
CREATE FUNCTION quiet_hours_wake() RETURNS trigger
    LANGUAGE plpgsql SET search_path = public, pg_temp
AS $$
BEGIN
    INSERT INTO wakes (tenant_id, waits_for)
    SELECT DISTINCT c.tenant_id, 'quiet_hours' FROM changed c
    ON CONFLICT ON CONSTRAINT wakes_pkey DO UPDATE SET asked_at = clock_timestamp();
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER quiet_hours_wake_update AFTER UPDATE ON quiet_hours REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION quiet_hours_wake();
CREATE TRIGGER quiet_hours_wake_delete AFTER DELETE ON quiet_hours REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION quiet_hours_wake();

-- Settings that count in a decision raise the tenant's version.
-- +goose StatementBegin
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['quiet_hours', 'do_not_contact', 'employees', 'pauses'] LOOP
        EXECUTE format('CREATE TRIGGER %I AFTER INSERT ON %I REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version()', t || '_bump_insert', t);
        IF t <> 'pauses' THEN
            EXECUTE format('CREATE TRIGGER %I AFTER UPDATE ON %I REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version()', t || '_bump_update', t);
        END IF;
        EXECUTE format('CREATE TRIGGER %I AFTER DELETE ON %I REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version()', t || '_bump_delete', t);
    END LOOP;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER pauses_bump_update AFTER UPDATE ON pauses FOR EACH ROW
    WHEN ((OLD.kill, OLD.killed_at, OLD.lifted_at) IS DISTINCT FROM (NEW.kill, NEW.killed_at, NEW.lifted_at))
    EXECUTE FUNCTION bump_config_version_row();
CREATE TRIGGER buckets_bump_insert AFTER INSERT ON buckets REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER buckets_bump_update AFTER UPDATE ON buckets FOR EACH ROW
    WHEN ((OLD.rate_limit, OLD.rate_seconds, OLD.burst, OLD.calendar, OLD.calendar_limit, OLD.timezone, OLD.concurrency, OLD.retired_at)
        IS DISTINCT FROM (NEW.rate_limit, NEW.rate_seconds, NEW.burst, NEW.calendar, NEW.calendar_limit, NEW.timezone, NEW.concurrency, NEW.retired_at))
    EXECUTE FUNCTION bump_config_version_row();
DROP TRIGGER tools_bump_update ON tools;
CREATE TRIGGER tools_bump_update AFTER UPDATE ON tools FOR EACH ROW
    WHEN ((OLD.effect, OLD.digest, OLD.accepted_digest, OLD.risk_override, OLD.effect_override, OLD.max_attempts, OLD.input_schema, OLD.hints,
            OLD.recipients, OLD.scopes, OLD.retry_base_seconds, OLD.retry_cap_seconds, OLD.retry_jitter)
        IS DISTINCT FROM (NEW.effect, NEW.digest, NEW.accepted_digest, NEW.risk_override, NEW.effect_override, NEW.max_attempts, NEW.input_schema, NEW.hints,
            NEW.recipients, NEW.scopes, NEW.retry_base_seconds, NEW.retry_cap_seconds, NEW.retry_jitter))
    EXECUTE FUNCTION bump_config_version_row();

-- A tenant's own settings raise its version, and move its calendar buckets.
-- +goose StatementBegin
CREATE FUNCTION tenant_settings_changed() RETURNS trigger
    LANGUAGE plpgsql SET search_path = public, pg_temp
AS $$
BEGIN
    NEW.config_version := NEW.config_version + 1;
    RETURN NEW;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER tenants_settings BEFORE UPDATE ON tenants FOR EACH ROW
    WHEN ((OLD.timezone, OLD.phone_region, OLD.plus_addressing) IS DISTINCT FROM (NEW.timezone, NEW.phone_region, NEW.plus_addressing))
    EXECUTE FUNCTION tenant_settings_changed();
-- +goose StatementBegin
CREATE FUNCTION tenant_moved() RETURNS trigger
    LANGUAGE plpgsql SET search_path = public, pg_temp
AS $$
BEGIN
    UPDATE buckets SET calendar_used = calendar_used WHERE tenant_id = NEW.tenant_id AND calendar IS NOT NULL AND timezone IS NULL;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER tenants_moved AFTER UPDATE ON tenants FOR EACH ROW
    WHEN (OLD.timezone IS DISTINCT FROM NEW.timezone) EXECUTE FUNCTION tenant_moved();

-- What a reader sees, with what an envelope waits for.
CREATE OR REPLACE VIEW envelopes WITH (security_invoker = true) AS
SELECT
    a.tenant_id, a.action_id, a.external_id, a.employee_id, a.session_id, a.automation_id, a.proposed_by,
    a.source_id, a.tool_name, a.composio_app, a.args, a.risk, a.effect, d.mode, d.mode_source, d.trace,
    a.config_version, a.tool_digest, a.approval_state, a.approval_expires_at, a.decided_at, a.decided_by, a.decision_note,
    a.rate_bucket, a.not_before, a.must_run_before, a.traceparent, a.created_at,
    CASE
        WHEN o.action_id IS NOT NULL THEN
            CASE WHEN o.status = 'sending' OR (a.effect <> 'once' AND o.lease_until > now()) THEN 'sending' ELSE 'pending' END
        -- What waits for a decision, or was refused, may have ended before
        -- and been replayed: the ledger's last row is of then.
        WHEN a.approval_state = 'required' THEN 'pending'
        WHEN a.approval_state IN ('denied', 'expired') THEN 'skipped'
        WHEN l.status IS NOT NULL THEN l.status
        ELSE 'pending'
    END AS status,
    coalesce(o.attempt, l.attempt, 0) AS attempt,
    o.next_attempt_at,
    l.code, l.message, l.result, l.provider_id, l.started_at, l.finished_at,
    a.urgent,
    CASE
        WHEN a.approval_state = 'required' THEN 'approval'
        WHEN o.status = 'sending' OR o.lease_until > now() THEN NULL
        WHEN o.waits_for IS NOT NULL AND o.next_attempt_at > now() THEN o.waits_for
        WHEN o.action_id IS NOT NULL AND bucket_paused(o.tenant_id, b.name) THEN 'paused'
        WHEN b.opens_at > greatest(now(), o.next_attempt_at) THEN coalesce(CASE WHEN b.closed_until = b.opens_at THEN b.closed_by END, 'bucket')
        WHEN o.next_attempt_at > now() THEN 'not_before'
        WHEN o.action_id IS NOT NULL THEN 'turn'
    END AS waits_for,
    CASE WHEN o.lease_until > now() THEN NULL ELSE greatest(o.next_attempt_at, b.opens_at) END AS waits_until
FROM actions a
JOIN decisions d ON d.tenant_id = a.tenant_id AND d.decision_id = a.decision_id
LEFT JOIN outbox o ON o.tenant_id = a.tenant_id AND o.action_id = a.action_id
LEFT JOIN buckets b ON b.bucket_id = o.bucket_id
LEFT JOIN LATERAL (
    SELECT e.status, e.attempt, e.code, e.message, e.result, e.provider_id, e.started_at, e.finished_at
    FROM tool_executions e
    WHERE e.tenant_id = a.tenant_id AND e.action_id = a.action_id
    ORDER BY e.finished_at DESC, e.attempt DESC
    LIMIT 1
) l ON true;

-- +goose StatementBegin
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['quiet_hours', 'do_not_contact', 'employees', 'pauses', 'breakers', 'wakes'] LOOP
        EXECUTE format('ALTER TABLE %I OWNER TO countersign_owner', t);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_api USING (tenant_id = (SELECT current_tenant())) WITH CHECK (tenant_id = (SELECT current_tenant()))', t || '_api', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_worker USING (true) WITH CHECK (true)', t || '_worker', t);
    END LOOP;
END
$$;
-- +goose StatementEnd
-- That everything is paused is no secret.
CREATE POLICY pauses_everything ON pauses FOR SELECT TO countersign_api USING (tenant_id IS NULL);
ALTER FUNCTION bucket_interval(buckets) OWNER TO countersign_owner;
ALTER FUNCTION bucket_period(buckets, timestamptz, text) OWNER TO countersign_owner;
ALTER FUNCTION bucket_tokens(buckets, timestamptz, text) OWNER TO countersign_owner;
ALTER FUNCTION bucket_derive() OWNER TO countersign_owner;
ALTER FUNCTION bucket_paused(uuid, text) OWNER TO countersign_owner;
ALTER FUNCTION quiet_hours_wake() OWNER TO countersign_owner;
ALTER FUNCTION pause_covers(text, text, uuid, text, text, text) OWNER TO countersign_owner;
ALTER FUNCTION tenant_settings_changed() OWNER TO countersign_owner;
ALTER FUNCTION tenant_gets_default_bucket() OWNER TO countersign_owner;
ALTER FUNCTION tenant_moved() OWNER TO countersign_owner;

GRANT SELECT, INSERT, UPDATE, DELETE ON quiet_hours, do_not_contact, employees TO countersign_api;
GRANT SELECT, INSERT, UPDATE ON pauses TO countersign_api;
GRANT SELECT, UPDATE ON breakers TO countersign_api;
GRANT SELECT, INSERT, UPDATE ON wakes TO countersign_api;
GRANT SELECT, DELETE ON wakes TO countersign_worker;
GRANT UPDATE ON buckets TO countersign_api;
GRANT UPDATE (timezone, phone_region, plus_addressing) ON tenants TO countersign_api;
GRANT SELECT ON quiet_hours, do_not_contact, employees TO countersign_worker;
GRANT SELECT, UPDATE ON pauses TO countersign_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON breakers TO countersign_worker;
