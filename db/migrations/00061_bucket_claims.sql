-- +goose Up

-- Concurrency limits are counted apart from outbox: setting outbox.held moved a claimed
-- row into an index, so that its claim was no heap-only update. Rows are inserted and
-- never waited for, except by the renewal of their lease.
ALTER TABLE outbox ADD COLUMN claim_id bigint;
CREATE TABLE bucket_claims (
    tenant_id   uuid        NOT NULL,
    bucket_id   bigint      NOT NULL,
    claim_id    bigint      NOT NULL,
    entry       bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    n           integer     NOT NULL,
    lease_until timestamptz,
    CONSTRAINT bucket_claims_pkey PRIMARY KEY (bucket_id, claim_id, entry)
) WITH (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
COMMENT ON TABLE bucket_claims IS 'Actions of buckets with a concurrency limit by claim: the claim adds them, and each statement that ends or returns some subtracts them. The sum of a claim is its number of outbox rows.';
COMMENT ON COLUMN bucket_claims.lease_until IS 'The latest lease of the claim''s actions, which count until then; NULL for a subtraction.';
COMMENT ON COLUMN outbox.claim_id IS 'The claim in bucket_claims that counts the row; NULL if none does.';
COMMENT ON COLUMN outbox.held IS 'It was claimed from a bucket with a concurrency limit by a worker that does not write bucket_claims.';

-- bucket_tokens returns the number of permits that a bucket has at a time, by its rate
-- and calendar limits, or a large number if it has neither. If the clock was set back to
-- before the counted calendar period, counting continues in that period.
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

-- bucket_in_use returns the number of a bucket's actions that count towards its
-- concurrency limit at a time.
CREATE FUNCTION bucket_in_use(bucket bigint, at timestamptz) RETURNS bigint
    LANGUAGE sql STABLE PARALLEL SAFE
RETURN coalesce((
        SELECT sum(l.n)
        FROM (SELECT sum(c.n) AS n FROM bucket_claims c WHERE c.bucket_id = bucket GROUP BY c.claim_id HAVING max(c.lease_until) >= at) l
    ), 0)::bigint + (SELECT count(1) FROM outbox o WHERE o.bucket_id = bucket AND o.held AND o.lease_until >= at);

-- Workers that do not read bucket_claims compare the limit with the rows that are held,
-- and with this function.
CREATE OR REPLACE FUNCTION bucket_permits(b buckets, at timestamptz, tenant_timezone text) RETURNS bigint
    LANGUAGE sql STABLE PARALLEL SAFE
RETURN greatest(0, least(bucket_tokens(b, at, tenant_timezone), b.concurrency - bucket_in_use(b.bucket_id, at)));

ALTER TABLE bucket_claims OWNER TO countersign_owner;
ALTER TABLE bucket_claims ENABLE ROW LEVEL SECURITY;
ALTER TABLE bucket_claims FORCE ROW LEVEL SECURITY;
CREATE POLICY bucket_claims_api ON bucket_claims TO countersign_api USING (tenant_id = (SELECT current_tenant())) WITH CHECK (tenant_id = (SELECT current_tenant()));
CREATE POLICY bucket_claims_worker ON bucket_claims TO countersign_worker USING (true) WITH CHECK (true);
GRANT SELECT, INSERT ON bucket_claims TO countersign_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON bucket_claims TO countersign_worker;
ALTER FUNCTION bucket_tokens(buckets, timestamptz, text) OWNER TO countersign_owner;
ALTER FUNCTION bucket_in_use(bigint, timestamptz) OWNER TO countersign_owner;
REVOKE EXECUTE ON FUNCTION bucket_tokens(buckets, timestamptz, text), bucket_in_use(bigint, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION bucket_tokens(buckets, timestamptz, text), bucket_in_use(bigint, timestamptz) TO countersign_api, countersign_worker;
