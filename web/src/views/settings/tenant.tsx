// What holds for the whole organisation: its settings, the mode of dangerous tools, and how long data is kept. Each is
// changed with what it was beside it.
import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { Collision } from '../../form/collision'
import { Changes } from '../../form/text'
import { useChange, type Version } from '../../lib/change'
import { type Problem, request, type Schemas } from '../../lib/client'
import type { JsonObject } from '../../lib/json'
import { type OperationID, useMay } from '../../lib/me'
import { whole } from '../../lib/pages'
import { diff } from '../../lib/pointer'
import { queries } from '../../lib/query'
import { Button, Command, Field, Loading, ProblemNote, Time, toast } from '../../ui'
import '../../form/form.css'

// bare returns an ETag as lists have it, without the quotes.
const bare = (etag: string) => etag.replaceAll('"', '')

interface EditorProps<T extends JsonObject> {
  base: Version<T>
  operation: OperationID
  read: () => Promise<Version<T>>
  write: (value: T, ifMatch: string | undefined) => Promise<unknown>
  what: string
  // put changes a part of the draft.
  fields: (draft: T, put: (change: Partial<T>) => void, off: boolean) => ReactNode
}

// Editor edits a value, shows what would change, and what somebody else changed meanwhile. onTyped is called when a
// change begins, and onOver when it is saved or given up.
function Editor<T extends JsonObject>({
  base,
  operation,
  read,
  write,
  what,
  fields,
  onTyped,
  onOver,
}: EditorProps<T> & { onTyped: () => void; onOver: () => void }) {
  const whyNot = useMay()(operation)
  const [draft, setDraft] = useState(base.value!)
  const changing = useChange<T>({
    base,
    read,
    write: (value, ifMatch) => write(value!, ifMatch),
    onSaved: () => {
      toast({ text: `${what}: saved.` })
      onOver()
    },
  })
  const { collision } = changing
  const changes = diff(changing.base ?? undefined, draft)
  return (
    <div className="stack">
      {fields(
        draft,
        (change) => {
          onTyped()
          setDraft({ ...draft, ...change })
        },
        whyNot !== undefined,
      )}
      {whyNot && <p className="muted">{whyNot}</p>}
      {collision && <Collision of={collision} onKeep={changing.keep} onDrop={onOver} />}
      {changes.length > 0 && !collision && (
        <section aria-label={`Changes of ${what.toLowerCase()}`}>
          <Changes changes={changes} />
        </section>
      )}
      {changing.error !== null && <ProblemNote error={changing.error} what="Not saved" />}
      {changes.length > 0 && (
        <p className="row">
          <Button
            kind="primary"
            busy={changing.busy}
            whyNot={whyNot ?? changing.whyNot}
            onClick={() => changing.save(draft)}
          >
            Save
          </Button>
          <Button onClick={onOver}>Discard</Button>
        </p>
      )}
    </div>
  )
}

interface PartProps<T extends JsonObject> extends Omit<EditorProps<T>, 'base'> {
  id: string
  reading: OperationID
  text: ReactNode
  children: ReactNode
}

// Part reads a value and edits it. A version that another person stored comes in unless a change has begun.
function Part<T extends JsonObject>({ id, reading, text, children, ...editor }: PartProps<T>) {
  const readable = useMay()(reading) === undefined
  const [begun, setBegun] = useState<Version<T>>()
  const [count, setCount] = useState(0)
  const stored = useQuery<Version<T>, Problem>({
    queryKey: ['config', 'settings', id],
    queryFn: editor.read,
    enabled: readable,
  })
  if (!readable) return null
  const base = begun ?? stored.data
  return (
    <section className="panel stack" aria-labelledby={`settings-${id}`}>
      <h2 id={`settings-${id}`}>{editor.what}</h2>
      <p className="muted">{text}</p>
      {stored.isPending && <Loading what={editor.what.toLowerCase()} />}
      {stored.error && <ProblemNote error={stored.error} onRetry={() => void stored.refetch()} />}
      {base && (
        <Editor
          key={`${base.etag} ${count}`}
          {...editor}
          base={base}
          onTyped={() => setBegun(base)}
          onOver={() =>
            void queries.invalidateQueries({ queryKey: ['config'] }).then(() => {
              setBegun(undefined)
              setCount(count + 1)
            })
          }
        />
      )}
      {children}
    </section>
  )
}

type TenantSettings = Schemas['TenantSettings']
type Settings = { [name in keyof TenantSettings]: NonNullable<TenantSettings[name]> }

async function readSettings(): Promise<Version<Settings>> {
  const { body, etag } = await request<Settings>('GET', '/api/v1/settings')
  return { value: body, etag: bare(etag) }
}

export function Organisation() {
  return (
    <Part<Settings>
      id="organisation"
      what="Organisation"
      reading="getSettings"
      operation="putSettings"
      text="The clock and the country of the organisation, and how much one session of an agent may leave waiting."
      read={readSettings}
      write={(value, ifMatch) => request('PUT', '/api/v1/settings', { body: value, ifMatch })}
      fields={(draft, put, off) => (
        <>
          <div className="fields">
            <Field label="Time zone" hint="Calendar buckets start again at its midnight.">
              {(wiring) => (
                <input
                  {...wiring}
                  value={draft.timezone}
                  readOnly={off}
                  spellCheck={false}
                  autoComplete="off"
                  onChange={(event) => put({ timezone: event.target.value })}
                />
              )}
            </Field>
            <Field label="Country of phone numbers" hint="Two capital letters; empty for none.">
              {(wiring) => (
                <input
                  {...wiring}
                  value={draft.phone_region ?? ''}
                  maxLength={2}
                  readOnly={off}
                  autoComplete="off"
                  onChange={(event) => put({ phone_region: event.target.value.toUpperCase() })}
                />
              )}
            </Field>
            {count('Waiting actions of a session', draft.session_pending_max ?? 10, off, (value) =>
              put({ session_pending_max: value }),
            )}
            {count('Proposals of a session in a minute', draft.session_minute_max ?? 60, off, (value) =>
              put({ session_minute_max: value }),
            )}
          </div>
          <label className="tick">
            <input
              type="checkbox"
              checked={draft.plus_addressing ?? false}
              disabled={off}
              onChange={(event) => put({ plus_addressing: event.target.checked })}
            />
            a+anything@b is the same recipient as a@b
          </label>
        </>
      )}
    >
      <Command of="countersign limits session --pending NUMBER --per-minute NUMBER" />
    </Part>
  )
}

const count = (label: string, value: number, off: boolean, put: (value: number) => void) => (
  <Field label={label} hint="0: any number.">
    {(wiring) => (
      <input
        {...wiring}
        type="number"
        min={0}
        max={1_000_000}
        value={value}
        readOnly={off}
        onChange={(event) => put(Math.trunc(Number(event.target.value)) || 0)}
      />
    )}
  </Field>
)

type Danger = { danger: Schemas['DangerMode'] }

async function readDanger(): Promise<Version<Danger>> {
  const { body, etag } = await request<Danger>('GET', '/api/v1/policy')
  return { value: { danger: body.danger }, etag: bare(etag) }
}

export function DangerousTools() {
  return (
    <Part<Danger>
      id="danger"
      what="Dangerous tools"
      reading="getPolicy"
      operation="putPolicy"
      text="Tools that their source declares destructive, where no other mode is set for them."
      read={readDanger}
      // A section that the document leaves out stays as it is.
      write={(value, ifMatch) => request('PUT', '/api/v1/policy', { body: value, ifMatch })}
      fields={({ danger }, put, off) => (
        <Field label="Mode">
          {(wiring) => (
            <select
              {...wiring}
              value={danger}
              disabled={off}
              onChange={(event) => put({ danger: event.target.value as Danger['danger'] })}
            >
              <option value="deny">deny: no agent sees them</option>
              <option value="require_approval">ask: a person decides about every call</option>
            </select>
          )}
        </Field>
      )}
    >
      <Command of="countersign policy danger MODE" />
    </Part>
  )
}

type Kept = { period: string; action: Schemas['RetentionAction'] }
type Kind = Schemas['RetentionKind']

const kinds: Record<Kind, { what: string; text: string }> = {
  actions: {
    what: 'Retention of actions',
    text: 'Actions that ended, with their attempts. What waits, is scheduled or is a dead letter stays.',
  },
  events: { what: 'Retention of events', text: 'The audit log, in whole checkpoints; the checkpoints stay.' },
}

const listRetention = async () => (await whole<Schemas['Retention']>('/api/v1/retention')).items

export function Retention({ kind }: { kind: Kind }) {
  const [note, setNote] = useState('')
  const { what, text } = kinds[kind]
  const read = async (): Promise<Version<Kept>> => {
    const one = (await listRetention()).find((row) => row.kind === kind)
    return { value: { period: one?.period ?? '', action: one?.action ?? 'report' }, etag: one?.etag ?? '' }
  }
  return (
    <Part<Kept>
      id={`retention-${kind}`}
      what={what}
      reading="listRetention"
      operation="putRetention"
      text={text}
      read={read}
      write={(value, ifMatch) =>
        request('PUT', `/api/v1/retention/${kind}`, { body: { ...value, note: note.trim() || undefined }, ifMatch })
      }
      fields={(draft, put, off) => (
        <div className="fields">
          <Field label="Kept for" hint="A number of days, such as 90d.">
            {(wiring) => (
              <input
                {...wiring}
                value={draft.period}
                readOnly={off}
                spellCheck={false}
                autoComplete="off"
                onChange={(event) => put({ period: event.target.value })}
              />
            )}
          </Field>
          <Field label="Older data">
            {(wiring) => (
              <select
                {...wiring}
                value={draft.action}
                disabled={off}
                onChange={(event) => put({ action: event.target.value as Kept['action'] })}
              >
                <option value="report">is counted once a day</option>
                <option value="delete">is deleted once a day</option>
              </select>
            )}
          </Field>
          {!off && (
            <Field label="Reason" hint="For the audit log. Optional.">
              {(wiring) => (
                <input
                  {...wiring}
                  value={note}
                  maxLength={500}
                  autoComplete="off"
                  onChange={(event) => setNote(event.target.value)}
                />
              )}
            </Field>
          )}
        </div>
      )}
    >
      <Older kind={kind} />
      <Command of="countersign retention set KIND --period DAYS --action ACTION" />
    </Part>
  )
}

// Older shows how much the last daily check found.
function Older({ kind }: { kind: Kind }) {
  const { data } = useQuery({ queryKey: ['config', 'retention'], queryFn: listRetention })
  const one = data?.find((row) => row.kind === kind)
  if (one?.older === undefined || !one.checked_at) return null
  return (
    <p>
      {one.older.toLocaleString('en')} older <Time at={one.checked_at} />.
    </p>
  )
}
