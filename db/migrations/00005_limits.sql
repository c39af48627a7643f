-- +goose Up

-- Limits that apply before an action is sent: buckets (rate, calendar and
-- concurrency limits), quiet hours, recipients who must not be contacted,
-- pauses, and limits per session.

-- Every action belongs to a bucket. Buckets are the unit of fairness: workers
-- claim due actions per bucket. Only the claim changes tat, granted_at and
-- calendar_*, under the lock of the row and by the database's clock.
CREATE TABLE buckets (
    bucket_id      bigint      NOT NULL GENERATED ALWAYS AS IDENTITY CONSTRAINT buckets_pkey PRIMARY KEY,
    tenant_id      uuid        NOT NULL CONSTRAINT buckets_tenant_id_fkey REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    name           text        NOT NULL,
    closed_until   timestamptz,
    rate_limit     integer,
    rate_seconds   float8,
    burst          integer,
    calendar       text,
    calendar_limit integer,
    timezone       text,
    concurrency    integer,
    limited        boolean     NOT NULL DEFAULT false,
    tat            timestamptz,
    granted_at     timestamptz,
    calendar_from  timestamptz,
    calendar_used  integer     NOT NULL DEFAULT 0,
    opens_at       timestamptz,
    closed_by      text,
    retired_at     timestamptz,
    updated_at     timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT buckets_tenant_id_name_key UNIQUE (tenant_id, name),
    CONSTRAINT buckets_name_check CHECK (name ~ '^[a-z0-9][a-z0-9_.-]{0,99}$'),
    CONSTRAINT buckets_rate_check CHECK (
        (rate_limit IS NULL AND rate_seconds IS NULL AND burst IS NULL)
        OR (rate_limit BETWEEN 1 AND 1000000 AND rate_seconds BETWEEN 0.001 AND 31622400 AND burst BETWEEN 1 AND 1000000)),
    CONSTRAINT buckets_calendar_check CHECK (
        (calendar IS NULL AND calendar_limit IS NULL)
        OR (calendar IN ('hour', 'day', 'week', 'month') AND calendar_limit BETWEEN 1 AND 1000000000)),
    CONSTRAINT buckets_concurrency_check CHECK (concurrency BETWEEN 1 AND 100000)
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
COMMENT ON COLUMN buckets.closed_until IS 'Nothing of the bucket is claimed before this time; NULL if it is open. Set when a provider asks to be called later.';
COMMENT ON COLUMN buckets.limited IS 'Whether the bucket has any limit, so that a claim must lock its row. Set by a trigger.';
COMMENT ON COLUMN buckets.tat IS 'GCRA: theoretical arrival time of the next permit; NULL or past when all permits of the burst are available.';
COMMENT ON COLUMN buckets.granted_at IS 'Time of the last claim that was granted permits. Only permits of that claim can be returned to the rate limit.';
COMMENT ON COLUMN buckets.calendar_from IS 'Start of the hour, day, week or month that calendar_used counts.';
COMMENT ON COLUMN buckets.opens_at IS 'Nothing is claimed before this time: the latest of closed_until, the next permit and the next calendar period; NULL if it is open. Set by a trigger.';
COMMENT ON COLUMN buckets.closed_by IS 'Code of the reason for closed_until.';
COMMENT ON COLUMN buckets.updated_at IS 'Time of the last change of the limits. Set by a trigger; permits granted before it are not returned.';
COMMENT ON COLUMN buckets.retired_at IS 'New actions may not use the bucket after this time. The row stays for the actions that are in it.';

-- bucket_interval returns the time between two permits. It is rounded up to a
-- microsecond, the resolution of timestamps, so that the rate limit is never
-- exceeded.
CREATE FUNCTION bucket_interval(b buckets) RETURNS interval
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN make_interval(secs => ceil(b.rate_seconds / b.rate_limit * 1000000) / 1000000);

-- bucket_period returns the start of the bucket's calendar period that a time
-- is in.
CREATE FUNCTION bucket_period(b buckets, at timestamptz, tenant_timezone text) RETURNS timestamptz
    LANGUAGE sql STABLE PARALLEL SAFE
RETURN date_trunc(b.calendar, at AT TIME ZONE coalesce(b.timezone, tenant_timezone)) AT TIME ZONE coalesce(b.timezone, tenant_timezone);

-- bucket_permits returns the number of permits that a bucket has at a time, by
-- its rate and calendar limits, or a large number if it has neither. If the
-- clock was set back to before the counted calendar period, counting continues
-- in that period.
CREATE FUNCTION bucket_permits(b buckets, at timestamptz, tenant_timezone text) RETURNS bigint
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

-- bucket_derive computes limited and opens_at on every write, so that workers
-- need no arithmetic to skip an exhausted bucket. A change of limits takes
-- effect at once: permits reserved ahead under the old rate are reduced to what
-- the new rate allows.
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
CREATE TRIGGER buckets_bump_insert AFTER INSERT ON buckets REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER buckets_bump_update AFTER UPDATE ON buckets FOR EACH ROW
    WHEN ((OLD.rate_limit, OLD.rate_seconds, OLD.burst, OLD.calendar, OLD.calendar_limit, OLD.timezone, OLD.concurrency, OLD.retired_at)
        IS DISTINCT FROM (NEW.rate_limit, NEW.rate_seconds, NEW.burst, NEW.calendar, NEW.calendar_limit, NEW.timezone, NEW.concurrency, NEW.retired_at))
    EXECUTE FUNCTION bump_config_version_row();

-- tenant_gets_default_bucket gives every new tenant the bucket "default", which
-- holds the actions that name no other bucket.
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

-- tenant_timezone_changed makes bucket_derive compute opens_at again, after a change of
-- the tenant's time zone, for the calendar buckets that use that zone.
-- +goose StatementBegin
CREATE FUNCTION tenant_timezone_changed() RETURNS trigger
    LANGUAGE plpgsql SET search_path = public, pg_temp
AS $$
BEGIN
    UPDATE buckets SET calendar_used = calendar_used WHERE tenant_id = NEW.tenant_id AND calendar IS NOT NULL AND timezone IS NULL;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER tenants_timezone AFTER UPDATE ON tenants FOR EACH ROW
    WHEN (OLD.timezone IS DISTINCT FROM NEW.timezone) EXECUTE FUNCTION tenant_timezone_changed();

-- Actions that wait for the reason waits_for are to be scheduled again, because
-- the reason may no longer apply. A background job of the worker does it in
-- pages, so that a change of a setting does not have to update a million rows.
CREATE TABLE wakes (
    tenant_id uuid        NOT NULL,
    waits_for text        NOT NULL,
    asked_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT wakes_pkey PRIMARY KEY (tenant_id, waits_for)
);

-- Weekly times during which nothing is sent.
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
COMMENT ON COLUMN quiet_hours.subject IS 'Employee id, bucket name, or recipient as kind:value; empty for the scope tenant.';
CREATE TRIGGER quiet_hours_bump_insert AFTER INSERT ON quiet_hours REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER quiet_hours_bump_update AFTER UPDATE ON quiet_hours REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER quiet_hours_bump_delete AFTER DELETE ON quiet_hours REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();

-- quiet_hours_wake requests that actions waiting for quiet hours are scheduled
-- again, because changed quiet hours may end earlier.
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

-- Recipients who must not be contacted.
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
COMMENT ON COLUMN do_not_contact.value IS 'Normalised in the same way as recipients.';
COMMENT ON COLUMN do_not_contact.bare IS 'value without the suffix added by plus addressing.';
CREATE TRIGGER do_not_contact_bump_insert AFTER INSERT ON do_not_contact REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER do_not_contact_bump_update AFTER UPDATE ON do_not_contact REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER do_not_contact_bump_delete AFTER DELETE ON do_not_contact REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();

-- Pauses, present and past. A pause with kill also ends the actions that were
-- pending.
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
    needs_policy_write boolean NOT NULL DEFAULT false,
    CONSTRAINT pauses_everything_check CHECK ((scope = 'everything') = (tenant_id IS NULL)),
    CONSTRAINT pauses_subject_check CHECK ((scope IN ('everything', 'tenant')) = (subject = ''))
);
CREATE UNIQUE INDEX pauses_active_key ON pauses (tenant_id, scope, subject) NULLS NOT DISTINCT WHERE lifted_at IS NULL;
CREATE INDEX pauses_unfinished ON pauses (paused_at) WHERE kill AND swept_at IS NULL OR lifted_at IS NOT NULL AND woken_at IS NULL;
COMMENT ON COLUMN pauses.tenant_id IS 'NULL for a pause of all tenants, which only an operator of the installation can set.';
COMMENT ON COLUMN pauses.subject IS 'Employee id, source id, bucket name, or source:tool; empty for the scopes everything and tenant.';
COMMENT ON COLUMN pauses.killed_at IS 'Actions proposed up to this time are ended.';
COMMENT ON COLUMN pauses.txid IS 'Transaction of the pause or, later, of the kill. Transactions that began before it may still commit actions that the kill must end.';
COMMENT ON COLUMN pauses.cancelled IS 'Number of actions that the kill ended.';
COMMENT ON COLUMN pauses.swept_at IS 'When all actions that the kill applies to were ended.';
COMMENT ON COLUMN pauses.needs_policy_write IS 'Whoever paused or killed could loosen policy (policy:write); lifting the pause then takes the same.';
COMMENT ON COLUMN pauses.woken_at IS 'When all actions that waited for the lifted pause were scheduled again.';
CREATE TRIGGER pauses_bump_insert AFTER INSERT ON pauses REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();
CREATE TRIGGER pauses_bump_update AFTER UPDATE ON pauses FOR EACH ROW
    WHEN ((OLD.kill, OLD.killed_at, OLD.lifted_at) IS DISTINCT FROM (NEW.kill, NEW.killed_at, NEW.lifted_at))
    EXECUTE FUNCTION bump_config_version_row();
CREATE TRIGGER pauses_bump_delete AFTER DELETE ON pauses REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION bump_config_version();

-- bucket_paused reports whether a pause covers a whole bucket. Pauses of an
-- employee, a source or a tool are checked per action, just before sending.
CREATE FUNCTION bucket_paused(tenant uuid, bucket text) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
RETURN EXISTS (
    SELECT FROM pauses p
    WHERE p.lifted_at IS NULL AND (p.scope = 'everything' OR p.tenant_id = tenant AND (p.scope = 'tenant' OR p.scope = 'bucket' AND p.subject = bucket)));

-- pause_covers reports whether a pause, of the action's tenant or of all
-- tenants, applies to an action.
CREATE FUNCTION pause_covers(scope text, subject text, employee uuid, source text, tool text, bucket text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE scope
    WHEN 'employee' THEN employee::text = subject
    WHEN 'source' THEN source = subject
    WHEN 'tool' THEN source || ':' || tool = subject
    WHEN 'bucket' THEN bucket = subject
    ELSE true
END;

-- What a session proposed in its current minute. The lock of the row serialises
-- the proposals of one session across all API replicas.
CREATE TABLE session_usage (
    tenant_id   uuid        NOT NULL,
    session_id  text        NOT NULL,
    window_from timestamptz NOT NULL,
    used        integer     NOT NULL,
    CONSTRAINT session_usage_pkey PRIMARY KEY (tenant_id, session_id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX session_usage_window_from ON session_usage USING brin (window_from);
COMMENT ON TABLE session_usage IS 'A row whose minute is over has no effect and may be deleted.';

-- Row-level security: the same two policies for every table.
-- +goose StatementBegin
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['buckets', 'wakes', 'quiet_hours', 'do_not_contact', 'pauses', 'session_usage'] LOOP
        EXECUTE format('ALTER TABLE %I OWNER TO countersign_owner', t);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_api USING (tenant_id = (SELECT current_tenant())) WITH CHECK (tenant_id = (SELECT current_tenant()))', t || '_api', t);
        EXECUTE format('CREATE POLICY %I ON %I TO countersign_worker USING (true) WITH CHECK (true)', t || '_worker', t);
    END LOOP;
END
$$;
-- +goose StatementEnd
-- Every tenant may see that everything is paused.
CREATE POLICY pauses_everything ON pauses FOR SELECT TO countersign_api USING (tenant_id IS NULL);

ALTER FUNCTION bucket_interval(buckets) OWNER TO countersign_owner;
ALTER FUNCTION bucket_period(buckets, timestamptz, text) OWNER TO countersign_owner;
ALTER FUNCTION bucket_permits(buckets, timestamptz, text) OWNER TO countersign_owner;
ALTER FUNCTION bucket_derive() OWNER TO countersign_owner;
ALTER FUNCTION tenant_gets_default_bucket() OWNER TO countersign_owner;
ALTER FUNCTION tenant_timezone_changed() OWNER TO countersign_owner;
ALTER FUNCTION quiet_hours_wake() OWNER TO countersign_owner;
ALTER FUNCTION bucket_paused(uuid, text) OWNER TO countersign_owner;
ALTER FUNCTION pause_covers(text, text, uuid, text, text, text) OWNER TO countersign_owner;

REVOKE EXECUTE ON FUNCTION bucket_derive(), tenant_gets_default_bucket(), tenant_timezone_changed(), quiet_hours_wake(),
    bucket_interval(buckets), bucket_period(buckets, timestamptz, text), bucket_permits(buckets, timestamptz, text),
    bucket_paused(uuid, text), pause_covers(text, text, uuid, text, text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION bucket_interval(buckets), bucket_period(buckets, timestamptz, text), bucket_permits(buckets, timestamptz, text),
    bucket_paused(uuid, text), pause_covers(text, text, uuid, text, text, text) TO countersign_api, countersign_worker;

GRANT SELECT, INSERT, UPDATE ON buckets, wakes, pauses, session_usage TO countersign_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON quiet_hours, do_not_contact TO countersign_api;

GRANT SELECT, UPDATE ON buckets, pauses TO countersign_worker;
GRANT SELECT, DELETE ON wakes TO countersign_worker;
GRANT SELECT ON quiet_hours, do_not_contact TO countersign_worker;
-- Workers propose the steps of workflows, which count towards session limits.
GRANT SELECT, INSERT, UPDATE, DELETE ON session_usage TO countersign_worker;
