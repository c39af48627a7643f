-- +goose Up

-- As before, but partitions go by their names. What somebody else dropped a
-- moment ago has a number for a regclass, which no statement can be made of;
-- of a name that is gone undefined_table says so.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION drop_partitions() RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '200ms'
AS $$
DECLARE
    p     text;
    empty boolean;
BEGIN
    FOR p IN
        SELECT format('public.%I', c.relname)
        FROM pg_inherits i
        JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'public.tool_executions'::regclass
            AND c.relname ~ '^tool_executions_[0-9]{6}$'
            AND right(c.relname, 6) < to_char((now() - interval '7 days') AT TIME ZONE 'UTC', 'YYYYMM')
        ORDER BY c.relname
    LOOP
        EXECUTE format('SELECT NOT EXISTS (SELECT 1 FROM ONLY %s)', p) INTO empty;
        CONTINUE WHEN NOT empty;
        LOCK TABLE ONLY public.tool_executions IN ACCESS EXCLUSIVE MODE;
        EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE', p);
        EXECUTE format('SELECT NOT EXISTS (SELECT 1 FROM ONLY %s)', p) INTO empty;
        IF empty THEN
            EXECUTE format('DROP TABLE %s', p);
            RETURN 1;
        END IF;
        -- Somebody wrote of a time that is past. The locks end with the
        -- transaction.
        RETURN 0;
    END LOOP;
    RETURN 0;
EXCEPTION WHEN lock_not_available OR deadlock_detected OR undefined_table THEN
    -- Busy, or somebody else dropped it a moment ago.
    RETURN 0;
END
$$;
-- +goose StatementEnd
