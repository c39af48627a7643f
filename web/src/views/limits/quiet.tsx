// Quiet hours: a week as a grid and as text, and its quiet times of the next two weeks.
import { useQuery } from '@tanstack/react-query'
import { type FormEvent, useEffect, useId, useState } from 'react'
import { Link, useLocation, useSearch } from 'wouter'
import { Collision } from '../../form/collision'
import { BeforeAfter, parsed } from '../../form/setting'
import { useChange, type Version } from '../../lib/change'
import { get, type Problem, request, type Schemas } from '../../lib/client'
import type { JsonObject } from '../../lib/json'
import { useMay } from '../../lib/me'
import { all } from '../../lib/pages'
import { diff } from '../../lib/pointer'
import { shown } from '../../lib/text'
import { Button, Chip, Command, Empty, Field, Loading, ProblemNote, toast } from '../../ui'
import { Grid } from './grid'
import { usePages } from './pages'
import { dateText, lengthText, read, timeText, weekOf, windowsOf, write } from './week'
import { Zones } from './zones'

type Stored = Schemas['StoredQuietHours']
type Scope = Schemas['QuietScope']
type Preview = Schemas['QuietPreview']

interface Of {
  scope: Scope
  subject: string
}

const to = '/limits/quiet-hours'
const list = 'quiet-hours'
const scopes: Record<Scope, string> = {
  tenant: 'the organisation',
  bucket: 'a bucket',
  employee: 'an employee',
  recipient: 'a recipient',
}
const hints: Record<Scope, string> = {
  tenant: '',
  bucket: 'Its name.',
  employee: 'The UUID.',
  recipient: 'Such as email:ana@example.org or domain:example.org.',
}

const nameOf = ({ scope, subject }: Of) => (scope === 'tenant' ? 'The organisation' : `${scope} ${shown(subject)}`)
const link = ({ scope, subject }: Of) =>
  `${to}?${new URLSearchParams({ scope, ...(scope !== 'tenant' && { subject }) })}`
const same = (a: Of, b: Of) => a.scope === b.scope && a.subject.toLowerCase() === b.subject.toLowerCase()
const ofStored = ({ scope, subject = '' }: Stored): Of => ({ scope, subject })

const hoursOf = ({ timezone, windows, spread }: Pick<Stored, 'timezone' | 'windows' | 'spread'>) =>
  ({ timezone, windows, ...(spread !== undefined && { spread }) }) as unknown as JsonObject

const versionOf = (stored: Stored | undefined): Version<JsonObject> =>
  stored ? { value: hoursOf(stored), etag: stored.etag } : { value: null, etag: '' }

export function QuietHours() {
  const stored = usePages<Stored>(list)
  // A saved editor begins again with what is stored.
  const [saved, setSaved] = useState(0)
  const asked = new URLSearchParams(useSearch())
  const scope = (asked.get('scope') ?? 'tenant') as Scope
  const of: Of = { scope, subject: scope === 'tenant' ? '' : (asked.get('subject') ?? '') }
  const known = scope in scopes && (scope === 'tenant' || of.subject !== '')
  const all = stored.data
  const found = all?.find((one) => same(ofStored(one), of))
  const others = all?.map(ofStored).filter((one) => one.scope !== 'tenant') ?? []
  if (known && scope !== 'tenant' && !others.some((one) => same(one, of))) others.push(of)
  return (
    <>
      <p className="muted">
        In quiet hours nothing is sent; what becomes due waits for their end. Several may cover an action.
      </p>
      <nav className="row" aria-label="Quiet hours">
        {[{ scope: 'tenant', subject: '' } as Of, ...others].map((one) => (
          <Link key={link(one)} href={link(one)} className="chip" aria-current={same(one, of) ? 'page' : undefined}>
            {nameOf(one)}
          </Link>
        ))}
      </nav>
      <Other />
      <Command of="countersign quiet set --tenant --timezone ZONE --window WINDOW" />
      {stored.isPending && <Loading what="quiet hours" />}
      {stored.error && <ProblemNote error={stored.error} onRetry={() => void stored.refetch()} />}
      {all && known && (
        <Editor
          key={`${link(of)} ${saved}`}
          of={of}
          stored={found}
          takeFocus={saved > 0}
          onSaved={() => void stored.refetch().then(() => setSaved(saved + 1))}
        />
      )}
      {!known && <Empty title="Unknown scope of quiet hours" />}
    </>
  )
}

// Other opens the quiet hours of something that has none so far.
function Other() {
  const [scope, setScope] = useState<Scope>('bucket')
  const [subject, setSubject] = useState('')
  const [, go] = useLocation()
  const buckets = usePages<{ name: string }>('buckets')
  const open = (event: FormEvent) => {
    event.preventDefault()
    if (subject.trim()) go(link({ scope, subject: subject.trim() }))
  }
  return (
    <details className="token">
      <summary>Quiet hours of a bucket, an employee or a recipient</summary>
      <form className="fields three" onSubmit={open}>
        <Field label="Of">
          {(wiring) => (
            <select {...wiring} value={scope} onChange={(e) => setScope(e.target.value as Scope)}>
              {(['bucket', 'employee', 'recipient'] as const).map((one) => (
                <option key={one} value={one}>
                  {scopes[one]}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field label="Which" hint={hints[scope]}>
          {(wiring) => (
            <input
              {...wiring}
              value={subject}
              maxLength={400}
              list="limits-buckets"
              onChange={(e) => setSubject(e.target.value)}
            />
          )}
        </Field>
        <datalist id="limits-buckets">
          {scope === 'bucket' && buckets.data?.map(({ name }) => <option key={name} value={name} />)}
        </datalist>
        <p className="row">
          <Button type="submit" whyNot={subject.trim() ? undefined : 'Enter which.'}>
            Open
          </Button>
        </p>
      </form>
    </details>
  )
}

interface Draft {
  text: string
  timezone: string
  spread: string
}

const draftOf = (value: JsonObject | null, timezone: string): Draft => {
  const hours = value as unknown as Stored | null
  return { text: write(hours?.windows ?? []), timezone: hours?.timezone ?? timezone, spread: hours?.spread ?? '5m' }
}

interface EditorProps {
  of: Of
  stored: Stored | undefined
  // takeFocus has the button that was pressed take the focus again.
  takeFocus: boolean
  onSaved: () => void
}

function Editor({ of, stored, takeFocus, onSaved }: EditorProps) {
  const may = useMay()
  const save = useId()
  useEffect(() => {
    if (takeFocus) document.getElementById(save)?.focus()
  }, [takeFocus, save])
  const settings = useQuery<Schemas['TenantSettings'], Problem>({
    queryKey: ['config', 'limits', 'settings'],
    enabled: !stored,
    queryFn: ({ signal }) => get('/api/v1/settings', {}, signal),
  })
  const [base] = useState(() => versionOf(stored))
  const [draft, setDraft] = useState<Draft>()
  const path = `/api/v1/quiet-hours/${of.scope}`
  const query = { subject: of.subject }
  const shownDraft = draft ?? draftOf(base.value, settings.data?.timezone ?? '')
  const set = (part: Partial<Draft>) => setDraft({ ...shownDraft, ...part })
  const change = useChange<JsonObject>({
    base,
    read: async () => versionOf((await all<Stored>('/api/v1/quiet-hours')).find((one) => same(ofStored(one), of))),
    write: (value, ifMatch) =>
      value === null
        ? request('DELETE', path, { query, ifMatch })
        : request('PUT', path, { query, body: value, ifMatch }),
    onSaved: (value) => {
      toast({ text: value === null ? 'The quiet hours are removed.' : 'The quiet hours are saved.' })
      onSaved()
    },
  })
  const { value: windows = [], wrong } = parsed(() => read(shownDraft.text))
  const value = wrong
    ? undefined
    : hoursOf({ timezone: shownDraft.timezone, windows, spread: shownDraft.spread.trim() || '5m' })
  const changes = value ? diff(change.base ?? undefined, value) : []
  const whyNot = may('putQuietHours')
  return (
    <section className="quiet-hours" aria-label={`Quiet hours: ${nameOf(of)}`}>
      <div className="panel">
        <Grid
          week={weekOf(windows)}
          off={whyNot !== undefined || (wrong !== undefined && shownDraft.text.trim() !== '')}
          onChange={(week) => set({ text: write(windowsOf(week)) })}
        />
        <p className="muted small">
          Drag, or use the arrow keys and Space; Shift with an arrow copies the hour. The clock is that of{' '}
          {shown(shownDraft.timezone) || 'the zone'}.
        </p>
      </div>
      <div className="stack">
        <div className="panel stack">
          <Field
            label="Windows"
            hint="One a line, as on the command line: mon-fri 20:00-08:00+1."
            error={draft && wrong}
          >
            {(wiring) => (
              <textarea
                {...wiring}
                className="mono"
                rows={5}
                value={shownDraft.text}
                readOnly={whyNot !== undefined}
                spellCheck={false}
                maxLength={4_000}
                onChange={(e) => set({ text: e.target.value })}
              />
            )}
          </Field>
          <div className="fields three">
            <Field label="Time zone">
              {(wiring) => <Zones {...wiring} value={shownDraft.timezone} onChange={(timezone) => set({ timezone })} />}
            </Field>
            <Field label="Spread" hint="What waited goes over this time.">
              {(wiring) => (
                <input
                  {...wiring}
                  value={shownDraft.spread}
                  maxLength={20}
                  onChange={(e) => set({ spread: e.target.value })}
                />
              )}
            </Field>
          </div>
          <BeforeAfter change={change} value={value} />
          {change.collision && (
            <Collision
              of={change.collision}
              onKeep={change.keep}
              onDrop={() => setDraft(draftOf(change.drop(), shownDraft.timezone))}
            />
          )}
          {change.error !== null && <ProblemNote error={change.error} what="Not saved" />}
          <p className="row">
            <Button
              id={save}
              kind="primary"
              whyNot={whyNot ?? wrong ?? change.whyNot ?? (changes.length === 0 ? 'Nothing is changed.' : undefined)}
              busy={change.busy}
              onClick={() => value && change.save(value)}
            >
              Save
            </Button>
            <Button
              kind="danger"
              whyNot={may('deleteQuietHours') ?? change.whyNot ?? (base.etag ? undefined : 'Nothing is stored.')}
              busy={change.busy}
              onClick={() => change.save(null)}
            >
              Remove
            </Button>
          </p>
        </div>
        {value && shownDraft.timezone && <NextDays of={of} value={value} />}
      </div>
    </section>
  )
}

// settled returns a value once it has not changed for a moment.
function useSettled<T>(value: T, text: string): T {
  const [kept, setKept] = useState(value)
  // biome-ignore lint/correctness/useExhaustiveDependencies: the text stands for the value
  useEffect(() => {
    const timer = setTimeout(() => setKept(value), 300)
    return () => clearTimeout(timer)
  }, [text])
  return kept
}

const mostShown = 30

const within = (at: string, from: string, until: string) =>
  Date.parse(from) <= Date.parse(at) && Date.parse(at) <= Date.parse(until)

// NextDays shows the quiet times of the next two weeks, computed by the server.
function NextDays({ of, value }: { of: Of; value: JsonObject }) {
  const body = useSettled(value, JSON.stringify(value))
  const preview = useQuery<Preview, Problem>({
    queryKey: ['dry-run', 'quiet-hours', of, body],
    queryFn: ({ signal }) =>
      request<Preview>('POST', '/api/v1/quiet-hours/preview', { query: { ...of }, body, signal }).then((a) => a.body),
    placeholderData: (before) => before,
    staleTime: 60_000,
    gcTime: 60_000,
  })
  if (preview.isPending) return <Loading what="the next 14 days" />
  if (preview.error) return <ProblemNote error={preview.error} what="No preview" />
  const { intervals, clock_changes, waiting } = preview.data
  return (
    <section className="panel stack" aria-label="The next 14 days">
      <h2>The next 14 days</h2>
      {waiting !== null && (
        <p role="status">
          {waiting === 0
            ? 'No scheduled action is in these times.'
            : `${waiting.toLocaleString('en')}${waiting >= 10_000 ? ' or more' : ''} scheduled actions would wait.`}
        </p>
      )}
      <p className="muted small">
        {waiting === null
          ? 'Scheduled actions are counted for the organisation and for a bucket alone.'
          : `Counted are actions ${of.scope === 'bucket' ? 'of this bucket ' : ''}
            that are scheduled now, not past ones.`}
      </p>
      {clock_changes.map(({ at, by_seconds }) => (
        <p key={at} className="row">
          <Chip tone="drift" icon="clock">
            clock change
          </Chip>
          {dateText(at)}: the clock {by_seconds > 0 ? 'goes forward' : 'goes back'} by {Math.abs(by_seconds) / 60} min,
          to {timeText(at)}.
        </p>
      ))}
      <ul>
        {intervals.slice(0, mostShown).map(({ from, until }) => (
          <li key={from} className="row">
            <span className="grow">
              {dateText(from)} {timeText(from)} to {dateText(from) !== dateText(until) && `${dateText(until)} `}
              {timeText(until)}
            </span>
            {clock_changes.some(({ at }) => within(at, from, until)) && <Chip tone="drift">clock change</Chip>}
            <span className="muted">{lengthText(from, until)}</span>
          </li>
        ))}
      </ul>
      {intervals.length > mostShown && <p className="muted">And {intervals.length - mostShown} more.</p>}
      {intervals.length === 0 && <p className="muted">No quiet time.</p>}
    </section>
  )
}
