import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { get, request } from '../../lib/client'
import type { Me } from '../../lib/me'
import { useMe } from '../../lib/me'
import { setPreferences, usePreferences } from '../../lib/preferences'
import { queries } from '../../lib/query'
import { logout } from '../../lib/session'
import { shown } from '../../lib/text'
import { absolute, zoneName } from '../../lib/time'
import { Button, Chip, Field, Loading, ProblemNote, Table, Time, toast } from '../../ui'
import { Automations } from './automations'
import { Logins } from './logins'
import { Runs } from './runs'
import { Tags } from './tags'

interface Session {
  session_id: string
  via: 'oidc' | 'code' | 'token'
  created_at: string
  used_at: string
  expires_at: string
  address: string
  program: string
  current: boolean
}

const ways = { oidc: 'the organisation’s login', code: 'a one-time code', token: 'a token' }

export default function Settings() {
  const me = useMe().data
  return (
    <div className="page">
      <header className="page-head">
        <h1 className="grow">Settings</h1>
        <Button onClick={() => void logout()}>Log out</Button>
      </header>
      {me && <Person me={me} />}
      <Display />
      <Automations />
      <Runs />
      <Tags />
      <Logins />
      <Sessions />
    </div>
  )
}

function Person({ me }: { me: Me }) {
  return (
    <section className="panel stack" aria-labelledby="settings-me">
      <h2 id="settings-me">You</h2>
      <dl className="terms">
        <div>
          <dt>Name</dt>
          <dd>{shown(me.name)}</dd>
        </div>
        {me.email && (
          <div>
            <dt>Mail</dt>
            <dd>{shown(me.email)}</dd>
          </div>
        )}
        <div>
          <dt>Organisation</dt>
          <dd>{shown(me.tenant)}</dd>
        </div>
        <div>
          <dt>Role</dt>
          <dd>{me.role}</dd>
        </div>
        {me.session && (
          <div>
            <dt>This session ends</dt>
            <dd>
              <Time at={me.session.expires_at} as="both" />
            </dd>
          </div>
        )}
      </dl>
    </section>
  )
}

function Display() {
  const { theme, zone, letters } = usePreferences()
  return (
    <section className="panel stack" aria-labelledby="settings-display">
      <h2 id="settings-display">This browser</h2>
      <div className="fields">
        <Field label="Colours">
          {(wiring) => (
            <select
              {...wiring}
              value={theme}
              onChange={(event) => setPreferences({ theme: event.target.value as typeof theme })}
            >
              <option value="system">System default</option>
              <option value="light">Light</option>
              <option value="dark">Dark</option>
            </select>
          )}
        </Field>
        <Field label="Times">
          {(wiring) => (
            <select
              {...wiring}
              value={zone}
              onChange={(event) => setPreferences({ zone: event.target.value as typeof zone })}
            >
              <option value="local">Local: {zoneName('local')}</option>
              <option value="UTC">UTC</option>
            </select>
          )}
        </Field>
        <Field label="Single-letter keys" hint="Without them, Ctrl or ⌘ with K lists every command.">
          {(wiring) => (
            <select
              {...wiring}
              value={letters}
              onChange={(event) => setPreferences({ letters: event.target.value as typeof letters })}
            >
              <option value="on">On</option>
              <option value="off">Off</option>
            </select>
          )}
        </Field>
      </div>
    </section>
  )
}

const shownFirst = 5

function Sessions() {
  const { zone } = usePreferences()
  const [all, setAll] = useState(false)
  const sessions = useQuery({
    queryKey: ['my-sessions'],
    queryFn: ({ signal }) => get<{ items: Session[] }>('/api/v1/me/sessions', { limit: 100 }, signal),
  })
  const end = useMutation({
    mutationFn: (one: Session) => request('DELETE', `/api/v1/me/sessions/${one.session_id}`),
    onSuccess: () => {
      toast({ text: 'The session ends within 10 seconds.' })
      void queries.invalidateQueries({ queryKey: ['my-sessions'] })
    },
  })
  return (
    <section className="panel stack" aria-labelledby="settings-sessions">
      <h2 id="settings-sessions">Your sessions</h2>
      {sessions.isPending && <Loading what="sessions" />}
      {sessions.isError && <ProblemNote error={sessions.error} onRetry={() => void sessions.refetch()} />}
      {end.isError && <ProblemNote error={end.error} what="The session did not end" />}
      {sessions.data && (
        <Table
          caption="Sessions"
          rows={all ? sessions.data.items : sessions.data.items.slice(0, shownFirst)}
          keyOf={(one) => one.session_id}
          columns={[
            {
              name: 'Browser',
              cell: (one) => (
                <span className="browser" title={shown(one.program)}>
                  {shown(browserOf(one.program))}
                  {one.current && <Chip tone="waits">this one</Chip>}
                </span>
              ),
            },
            { name: 'By', cell: (one) => ways[one.via], hideNarrow: true },
            { name: 'Address', cell: (one) => shown(one.address), hideNarrow: true },
            { name: 'Opened', cell: (one) => <Time at={one.created_at} />, hideNarrow: true },
            { name: 'Used', cell: (one) => <Time at={one.used_at} /> },
            { name: 'Ends', cell: (one) => <Time at={one.expires_at} />, hideNarrow: true },
            {
              name: 'End',
              unnamed: true,
              cell: (one) => (
                <Button onClick={() => (one.current ? void logout() : end.mutate(one))} busy={end.isPending}>
                  End<span className="unseen"> the session opened {absolute(one.created_at, zone)}</span>
                </Button>
              ),
            },
          ]}
        />
      )}
      {!all && (sessions.data?.items.length ?? 0) > shownFirst && (
        <p>
          <Button onClick={() => setAll(true)}>Show older ones</Button>
        </p>
      )}
    </section>
  )
}

// browserOf returns what people call the program: the whole text is shown on pointing.
function browserOf(program: string): string {
  const system = /\b(Windows|Mac OS X|Android|iPhone|iPad|Linux)\b/.exec(program)?.[1]
  const name = /\b(Edg|OPR|Firefox|Chrome|HeadlessChrome|Safari)\//.exec(program)?.[1]
  const called = { Edg: 'Edge', OPR: 'Opera' }[name ?? ''] ?? name
  return [called ?? (program || 'unknown'), system && `on ${system}`].filter(Boolean).join(' ')
}
