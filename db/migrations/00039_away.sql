-- +goose Up

-- Triage may propose the answer in the owner's absence, to the sender of a message, with
-- the account's texts and times. It has a deadline.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION triage_args_allowed(tool text, args jsonb, fields jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, countersign_data, pg_temp
AS $$
    WITH RECURSIVE nodes AS (
        SELECT '' AS pointer, args AS value
        UNION ALL
        SELECT n.pointer || '/' || m.name, m.value
        FROM nodes n
        CROSS JOIN LATERAL (
            SELECT replace(replace(o.key, '~', '~0'), '/', '~1') AS name, o.value
            FROM jsonb_each(CASE WHEN jsonb_typeof(n.value) = 'object' THEN n.value ELSE '{}' END) o
            UNION ALL
            SELECT (i.at - 1)::text, i.value
            FROM jsonb_array_elements(CASE WHEN jsonb_typeof(n.value) = 'array' THEN n.value ELSE '[]' END) WITH ORDINALITY i (value, at)
        ) m
    ), leaves AS (
        SELECT n.pointer, n.value FROM nodes n WHERE n.value IN ('{}', '[]') OR jsonb_typeof(n.value) NOT IN ('object', 'array')
    ), named AS (
        SELECT f.value ->> 'pointer' AS pointer, f.value -> 'value' AS value, f.value ->> 'origin' AS origin,
            regexp_replace(f.value ->> 'pointer', '/(0|[1-9][0-9]*)$', '/*') AS place
        FROM jsonb_array_elements(fields) f
    ), allowed (tools, place, origins) AS (VALUES
        ('{message.label,message.flag,message.archive,message.move,message.trash,message.snooze,message.unsubscribe,message.away,message.draft}'::text[], '/account', '{config}'::text[]),
        ('{message.label,message.flag,message.archive,message.move,message.trash,message.snooze,message.unsubscribe,message.away}', '/message/folder', '{header}'),
        ('{message.label,message.flag,message.archive,message.move,message.trash,message.snooze,message.unsubscribe,message.away}', '/message/key', '{header}'),
        ('{message.label,message.flag,message.archive,message.move,message.trash,message.snooze,message.unsubscribe,message.away}', '/message/message_id', '{header}'),
        ('{message.label,message.flag,message.archive,message.move,message.trash,message.snooze,message.unsubscribe,message.away}', '/message/identity', '{header}'),
        ('{message.label,message.flag,message.archive,message.move,message.trash,message.snooze}', '/expected/folder', '{header}'),
        ('{message.label,message.flag,message.archive,message.move,message.trash,message.snooze}', '/expected/flags/*', '{header}'),
        ('{message.label,message.archive}', '/labels/add/*', '{header,config,template}'),
        ('{message.label,message.archive}', '/labels/remove/*', '{header,config,template}'),
        ('{message.flag,message.label}', '/flags/add/*', '{enum}'),
        ('{message.flag,message.label}', '/flags/remove/*', '{enum}'),
        ('{message.move}', '/folder', '{config}'),
        ('{message.snooze}', '/until', '{calendar}'),
        ('{message.draft}', '/to/*', '{header,config,template}'),
        ('{message.draft}', '/cc/*', '{header,config,template}'),
        ('{message.draft}', '/subject', '{header,config,template}'),
        ('{message.draft}', '/in_reply_to', '{header}'),
        ('{message.draft}', '/references/*', '{header}'),
        ('{message.draft}', '/text', '{header,config,template,enum,model_text}'),
        ('{message.away}', '/to', '{header}'),
        ('{message.away}', '/subject', '{config}'),
        ('{message.away}', '/text', '{config}'),
        ('{message.away}', '/since', '{config}'),
        ('{message.away}', '/until', '{config}')
    )
    SELECT jsonb_typeof(args) = 'object' AND jsonb_typeof(fields) = 'array'
        AND (SELECT count(1) = count(DISTINCT pointer) AND count(1) > 0 FROM named)
        AND NOT EXISTS (
            SELECT 1 FROM leaves l FULL JOIN named f ON f.pointer = l.pointer
            WHERE f.pointer IS NULL OR l.pointer IS NULL OR jsonb_typeof(l.value) <> 'string' OR f.value IS DISTINCT FROM l.value
        )
        AND NOT EXISTS (
            SELECT 1 FROM named f
            WHERE f.origin = 'calendar' AND (f.value #>> '{}') !~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}T06:00:00Z$'
                OR NOT EXISTS (SELECT 1 FROM allowed a WHERE tool = ANY (a.tools) AND a.place = f.place AND f.origin = ANY (a.origins))
        )
$$;
-- +goose StatementEnd

ALTER TABLE triage_proposals
    DROP CONSTRAINT triage_proposals_envelope_check,
    ADD CONSTRAINT triage_proposals_envelope_check CHECK (
        envelope ->> 'type' = 'mcp.exec'
        AND envelope ->> 'external_id' = external_id AND external_id ~ '^triage:[0-9a-f]{64}$'
        AND envelope - '{type,external_id,tool,args,risk,approval,constraints}'::text[] = '{}'
        AND coalesce(envelope -> 'constraints', '{}') - 'must_run_before' = '{}'
        AND (envelope #>> '{tool,name}' = 'message.away') = (envelope #>> '{constraints,must_run_before}' IS NOT NULL)
        AND coalesce(envelope ->> 'approval', 'required') = 'required'
        AND (envelope -> 'tool') - '{name,source}'::text[] = '{}'
    );
