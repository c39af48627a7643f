-- +goose Up

-- Countersign's tables and functions are in schema countersign_data, in which only
-- their owner may create, and its functions search pg_catalog first. What earlier
-- versions left in public was moved before this migration (db/prepare.sql); here
-- the functions follow whose texts name the schema.

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION ensure_partitions(months_ahead integer) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, countersign_data, pg_temp
AS $$
DECLARE
    first_day date;
    made      integer := 0;
BEGIN
    FOR n IN 0 .. months_ahead LOOP
        first_day := (date_trunc('month', now() AT TIME ZONE 'UTC') + make_interval(months => n))::date;
        IF to_regclass(format('countersign_data.tool_executions_%s', to_char(first_day, 'YYYYMM'))) IS NULL THEN
            EXECUTE format('CREATE TABLE countersign_data.tool_executions_%s (LIKE countersign_data.tool_executions INCLUDING ALL)', to_char(first_day, 'YYYYMM'));
            EXECUTE format(
                'ALTER TABLE countersign_data.tool_executions ATTACH PARTITION countersign_data.tool_executions_%s FOR VALUES FROM (%L) TO (%L)',
                to_char(first_day, 'YYYYMM'),
                first_day::text || ' 00:00:00+00',
                (first_day + interval '1 month')::date::text || ' 00:00:00+00');
            made := made + 1;
        END IF;
    END LOOP;
    RETURN made;
EXCEPTION WHEN duplicate_table THEN
    -- Another session creates them concurrently; those of this call are rolled
    -- back.
    RETURN 0;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION drop_partitions() RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, countersign_data, pg_temp SET lock_timeout = '200ms'
AS $$
DECLARE
    p     text;
    empty boolean;
BEGIN
    FOR p IN
        SELECT format('countersign_data.%I', c.relname)
        FROM pg_inherits i
        JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'countersign_data.tool_executions'::regclass
            AND c.relname ~ '^tool_executions_[0-9]{6}$'
            AND right(c.relname, 6) < to_char((now() - interval '7 days') AT TIME ZONE 'UTC', 'YYYYMM')
        ORDER BY c.relname
    LOOP
        EXECUTE format('SELECT NOT EXISTS (SELECT 1 FROM ONLY %s)', p) INTO empty;
        CONTINUE WHEN NOT empty;
        LOCK TABLE ONLY countersign_data.tool_executions IN ACCESS EXCLUSIVE MODE;
        EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE', p);
        EXECUTE format('SELECT NOT EXISTS (SELECT 1 FROM ONLY %s)', p) INTO empty;
        IF empty THEN
            EXECUTE format('DROP TABLE %s', p);
            RETURN 1;
        END IF;
        -- Another session inserted a row of a past month meanwhile. The locks
        -- are released at the end of the transaction.
        RETURN 0;
    END LOOP;
    RETURN 0;
EXCEPTION WHEN lock_not_available OR deadlock_detected OR undefined_table THEN
    -- The table is busy, or another session dropped the partition.
    RETURN 0;
END
$$;
-- +goose StatementEnd

-- Version 1 granted these in public, for which there is no more use.
-- +goose StatementBegin
DO $$
BEGIN
    IF to_regnamespace('public') IS NOT NULL AND EXISTS (
        SELECT FROM pg_namespace n, aclexplode(n.nspacl) a
        WHERE n.oid = to_regnamespace('public') AND a.grantee = 'countersign_owner'::regrole
    ) THEN
        REVOKE ALL ON SCHEMA public FROM countersign_owner, countersign_api, countersign_worker, countersign_triage;
    END IF;
END
$$;
-- +goose StatementEnd
