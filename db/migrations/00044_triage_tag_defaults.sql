-- +goose Up

-- triage_tag_args_allowed reports whether every value in the arguments of a try
-- stands among the fields, at its place: a text of the message, of its header, or of
-- the configuration, or a number or a boolean of the configuration.
CREATE OR REPLACE FUNCTION triage_tag_args_allowed(args jsonb, fields jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, countersign_data, pg_temp
AS $$
    SELECT jsonb_typeof(args) = 'object' AND jsonb_typeof(fields) = 'array' AND coalesce((
        SELECT count(1) = count(DISTINCT f ->> 'pointer')
            AND bool_and(coalesce(f ->> 'pointer' ~ '^(/[A-Za-z0-9_-]+){1,6}$' AND jsonb_typeof(f -> 'value') = 'string'
                AND CASE
                    WHEN f ->> 'origin' IN ('header', 'config', 'span') THEN args #> string_to_array(substr(f ->> 'pointer', 2), '/') = f -> 'value'
                    WHEN f ->> 'origin' = 'literal' THEN jsonb_typeof(args #> string_to_array(substr(f ->> 'pointer', 2), '/')) IN ('number', 'boolean')
                        AND args #>> string_to_array(substr(f ->> 'pointer', 2), '/') = f ->> 'value'
                    ELSE false
                END, false))
            AND count(1) = (SELECT count(1) FROM jsonb_path_query(args, 'strict $.** ? (@.type() != "object" && @.type() != "array")'))
        FROM jsonb_array_elements(fields) f
    ), false)
$$;
COMMENT ON COLUMN triage_proposals.fields IS 'Every value of the arguments with its pointer and where it comes from: header, config, template, enum, calendar, model_text, span or literal.';
