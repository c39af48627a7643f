// Buckets: their limits, the used part of each, and the waiting actions.
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { Link, useLocation, useSearch } from 'wouter'
import { parsed, Setting } from '../../form/setting'
import { useChange, versionAt } from '../../lib/change'
import { post, request } from '../../lib/client'
import type { JsonObject } from '../../lib/json'
import { useMay } from '../../lib/me'
import { usePreferences } from '../../lib/preferences'
import { configChanged } from '../../lib/query'
import { shown } from '../../lib/text'
import { clock, useNow } from '../../lib/time'
import { Button, Command, Field, Loading, ProblemNote, State as StateChip, Time, toast } from '../../ui'
import { Export } from '../../ui/export'
import {
  calendarText,
  type Draft,
  draftOf,
  estimate,
  type Limits,
  limitsIn,
  limitsOf,
  rateText,
  type State,
  standing,
} from './bucket'
import { usePages } from './pages'
import { Wrong } from './wrong'
import { Zones } from './zones'

const to = '/limits/buckets'
const path = (name: string) => `/api/v1/buckets/${encodeURIComponent(name)}`
const number = (n: number) => `${n.toLocaleString('en')}${n >= 100_000 ? ' or more' : ''}`

export function Buckets() {
  const buckets = usePages<State>('buckets', 5_000)
  const may = useMay()
  const [, go] = useLocation()
  const asked = new URLSearchParams(useSearch())
  const name = asked.get('bucket')
  const all = buckets.data
  const open = all?.find((one) => one.name === name)
  const close = () => go(to, { replace: true })
  return (
    <>
      <div className="row">
        <p className="muted grow">
          {all && `${all.filter((one) => !one.retired_at).length} in use. Every action is in one bucket.`}
        </p>
        <Export name="buckets" to="/api/v1/buckets" />
        <Button whyNot={may('putBucket')} onClick={() => go(`${to}?new=1`)}>
          New bucket…
        </Button>
      </div>
      {buckets.isPending && <Loading what="buckets" />}
      {buckets.error && <ProblemNote error={buckets.error} onRetry={() => void buckets.refetch()} />}
      <ul className="cards">
        {all?.map((one) => (
          <li key={one.name} className="panel">
            <Bucket state={one} />
          </li>
        ))}
      </ul>
      <Command of="countersign bucket set NAME --rate RATE --burst N --calendar LIMIT --concurrency N" />
      {name !== null && all && !open && (
        <p role="status">
          No bucket {shown(name)}. <Link href={to}>All buckets</Link>
        </p>
      )}
      {open && <Edit key={open.name} state={open} onClose={close} />}
      {asked.has('new') && all && <Create taken={all} onClose={close} />}
    </>
  )
}

function Bucket({ state }: { state: State }) {
  const now = useNow(5_000)
  const may = useMay()
  const [, go] = useLocation()
  const [sign, word] = standing(state, now)
  const held = Date.parse(state.closed_until ?? '') > now
  const reopen = useMutation({
    mutationFn: () => post(`${path(state.name)}/reopen`),
    onSuccess: () => {
      toast({ text: `${shown(state.name)} is open again.` })
      configChanged()
    },
  })
  return (
    <section className="stack" aria-label={`Bucket ${shown(state.name)}`}>
      <div className="row">
        <h2 className="grow cut">{shown(state.name)}</h2>
        <StateChip state={sign} word={shown(word)} />
      </div>
      <dl className="terms">
        <Term name="Rate" limit={state.rate && rateText(state.rate)}>
          {state.permits !== null && `${number(state.permits)} may go now`}
        </Term>
        <Term name="Calendar" limit={state.calendar && calendarText(state.calendar)}>
          {state.calendar_used !== null && `${number(state.calendar_used)} used`}
        </Term>
        <Term name="Concurrent calls" limit={state.concurrency?.toLocaleString('en')}>
          {state.concurrency !== undefined && `${number(state.in_use)} in use`}
        </Term>
        <div>
          <dt>Waits</dt>
          <dd>
            {state.due + state.waiting === 0
              ? 'nothing'
              : `${number(state.due)} for a turn, ${number(state.waiting)} for a time`}
          </dd>
        </div>
        {(held || Date.parse(state.opens_at ?? '') > now) && (
          <div>
            <dt>Opens</dt>
            <dd>
              <Time at={held ? state.closed_until : state.opens_at} as="both" />
            </dd>
          </div>
        )}
      </dl>
      {reopen.error && <ProblemNote error={reopen.error} what="Not opened" />}
      <div className="row">
        <Button whyNot={may('putBucket')} onClick={() => go(`${to}?bucket=${encodeURIComponent(state.name)}`)}>
          {state.retired_at ? 'Use again…' : 'Edit…'}
          <span className="unseen"> {shown(state.name)}</span>
        </Button>
        {held && (
          <Button whyNot={may('reopenBucket')} busy={reopen.isPending} onClick={() => reopen.mutate()}>
            Reopen<span className="unseen"> {shown(state.name)}</span>
          </Button>
        )}
      </div>
    </section>
  )
}

function Term({ name, limit, children }: { name: string; limit: string | undefined; children: string | false }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        {limit ? shown(limit) : <span className="faint">no limit</span>}
        {limit && children && <span className="muted"> · {children}</span>}
      </dd>
    </div>
  )
}

const write = (name: string) => (limits: JsonObject | null, ifMatch: string | undefined) =>
  limits === null ? request('DELETE', path(name), { ifMatch }) : request('PUT', path(name), { body: limits, ifMatch })

const read = (name: string) => versionAt<State, JsonObject>(path(name), (state) => limitsIn(state) as JsonObject)

function Edit({ state, onClose }: { state: State; onClose: () => void }) {
  const may = useMay()
  const name = shown(state.name)
  const change = useChange<JsonObject>({
    base: { value: state.retired_at ? null : (limitsIn(state) as JsonObject), etag: state.etag },
    read: () => read(state.name),
    write: write(state.name),
    onSaved: (value) => {
      toast({ text: `${name} is ${value === null ? 'retired' : 'saved'}.` })
      onClose()
    },
  })
  const [draft, setDraft] = useState(() => draftOf(change.base))
  const { value, wrong } = parsed(() => limitsOf(draft))
  return (
    <Setting
      title={`Bucket ${name}`}
      change={change}
      value={value as JsonObject | undefined}
      whyNot={may('putBucket') ?? wrong}
      onTheirs={(theirs) => setDraft(draftOf(theirs))}
      remove={{
        word: 'Retire',
        name,
        text: <p>New actions may no longer name it. Those that wait are sent within its limits.</p>,
        whyNot: may('retireBucket') ?? (state.name === 'default' ? 'This bucket cannot be retired.' : undefined),
      }}
      onClose={onClose}
    >
      <Fields draft={draft} set={(part) => setDraft({ ...draft, ...part })} />
      <Wrong of={wrong} />
      {value && <Effect state={state} limits={value} />}
    </Setting>
  )
}

function Create({ taken, onClose }: { taken: readonly State[]; onClose: () => void }) {
  const may = useMay()
  const [name, setName] = useState('')
  const [draft, setDraft] = useState(() => draftOf(null))
  const { value, wrong } = parsed(() => {
    if (!/^[a-z0-9][a-z0-9._-]{0,99}$/.test(name))
      throw new RangeError('Name must be up to 100 of a to z, 0 to 9, dot, - and _.')
    if (taken.some((one) => one.name === name)) throw new RangeError('This name is taken.')
    return limitsOf(draft)
  })
  const change = useChange<JsonObject>({
    base: { value: null, etag: '' },
    read: () => read(name),
    write: write(name),
    onSaved: () => {
      toast({ text: `${shown(name)} is saved.` })
      onClose()
    },
  })
  return (
    <Setting
      title="New bucket"
      change={change}
      value={value as JsonObject | undefined}
      whyNot={may('putBucket') ?? wrong}
      onTheirs={(theirs) => setDraft(draftOf(theirs))}
      onClose={onClose}
    >
      <Field label="Name" hint="Agents name it in rate_bucket.">
        {(wiring) => <input {...wiring} value={name} maxLength={100} onChange={(e) => setName(e.target.value)} />}
      </Field>
      <Fields draft={draft} set={(part) => setDraft({ ...draft, ...part })} />
      <Wrong of={wrong} />
    </Setting>
  )
}

function Fields({ draft, set }: { draft: Draft; set: (part: Partial<Draft>) => void }) {
  const field = (label: string, name: keyof Draft, hint: string, placeholder = 'no limit') => (
    <Field label={label} hint={hint}>
      {(wiring) => (
        <input
          {...wiring}
          value={draft[name]}
          inputMode={name === 'per' ? 'text' : 'numeric'}
          placeholder={placeholder}
          maxLength={20}
          onChange={(e) => set({ [name]: e.target.value })}
        />
      )}
    </Field>
  )
  return (
    <>
      <div className="fields three">
        {field('Rate', 'rate', 'Calls per interval.')}
        {field('Interval', 'per', 'Such as 1m or 1h30m.', '1m')}
        {field('Burst', 'burst', 'At a time after a pause.', '1')}
      </div>
      <div className="fields three">
        {field('Calendar', 'calendar', 'Calls per period.')}
        <Field label="Period">
          {(wiring) => (
            <select {...wiring} value={draft.every} onChange={(e) => set({ every: e.target.value as Draft['every'] })}>
              {['hour', 'day', 'week', 'month'].map((every) => (
                <option key={every}>{every}</option>
              ))}
            </select>
          )}
        </Field>
        <Field label="Time zone">
          {(wiring) => (
            <Zones
              {...wiring}
              value={draft.timezone}
              placeholder="the organisation’s"
              onChange={(timezone) => set({ timezone })}
            />
          )}
        </Field>
      </div>
      <div className="fields three">{field('Concurrent calls', 'concurrency', 'Calls at the same time.')}</div>
    </>
  )
}

// Effect shows the time that waiting actions would take under limits.
function Effect({ state, limits }: { state: State; limits: Limits }) {
  const now = useNow(5_000)
  const { zone } = usePreferences()
  const { count, more, last } = estimate(state, limits, now)
  const many = `${count.toLocaleString('en')}${more ? ' or more wait' : count === 1 ? ' waits' : ' wait'} now`
  return (
    <p className="panel meant" role="status">
      {count === 0 ? (
        'Nothing waits now.'
      ) : last === undefined ? (
        `${many}. Without a rate or a calendar the time of the last depends on how long calls take.`
      ) : (
        <>
          {many}; at these limits the last goes at about <strong>{clock(new Date(last), zone, now)}</strong>. An
          estimate over the actions that wait now, as if all were due and no other came.
          {state.paused && ' While the bucket is paused, none goes.'}
        </>
      )}
    </p>
  )
}
