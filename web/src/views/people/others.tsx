// The sessions of all people in browsers.
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { type Problem, request, type Schemas } from '../../lib/client'
import { useMay, useMe } from '../../lib/me'
import { type Whole, whole } from '../../lib/pages'
import { configChanged } from '../../lib/query'
import { shown } from '../../lib/text'
import { Ask, Button, Chip, Command, Loading, ProblemNote, Shown, Table, Time, toast } from '../../ui'
import { browserOf, ways } from '../settings/sessions'
import { rolesOf } from './scopes'

type Session = Schemas['BrowserSession']

const to = '/api/v1/operators/sessions'

// Others lists the sessions of all people, and ends them.
export function Others() {
  const may = useMay()
  const me = useMe().data
  const [ending, setEnding] = useState<Session>()
  const sessions = useQuery<Whole<Session>, Problem>({
    queryKey: ['config', 'sessions'],
    queryFn: ({ signal }) => whole<Session>(to, {}, signal),
  })
  const whyNot = (one: Session) =>
    may('endSession') ??
    (one.current
      ? 'It is this one: end it above.'
      : (rolesOf(me?.role ?? '') as readonly string[]).includes(one.role ?? '')
        ? undefined
        : 'Only owners end sessions of this role.')
  return (
    <section className="panel stack" aria-labelledby="all-sessions">
      <h2 id="all-sessions">Everybody’s sessions</h2>
      {sessions.isPending && <Loading what="sessions" />}
      {sessions.error && <ProblemNote error={sessions.error} onRetry={() => void sessions.refetch()} />}
      {sessions.data && (
        <Table
          caption="Sessions of all people"
          rows={sessions.data.items}
          keyOf={(one) => one.session_id}
          columns={[
            {
              name: 'Name',
              cell: (one) => (
                <span className="row">
                  <Shown text={one.name ?? ''} />
                  {one.current && <Chip tone="waits">this one</Chip>}
                </span>
              ),
            },
            { name: 'Role', cell: (one) => one.role },
            { name: 'Browser', cell: (one) => <span title={shown(one.program)}>{shown(browserOf(one.program))}</span> },
            { name: 'By', cell: (one) => ways[one.via], hideNarrow: true },
            { name: 'Address', cell: (one) => shown(one.address), hideNarrow: true },
            { name: 'Opened', cell: (one) => <Time at={one.created_at} />, hideNarrow: true },
            { name: 'Used', cell: (one) => <Time at={one.used_at} />, hideNarrow: true },
            {
              name: 'End',
              unnamed: true,
              cell: (one) => (
                <Button whyNot={whyNot(one)} onClick={() => setEnding(one)}>
                  End<span className="unseen"> the session of {shown(one.name ?? '')}</span>
                </Button>
              ),
            },
          ]}
        />
      )}
      {sessions.data?.cut && <p className="muted">Not all sessions are listed.</p>}
      <Command of="countersign operator session list" />
      {ending && (
        <Ask
          title={`End the session of ${shown(ending.name ?? '')}?`}
          text="The browser is logged out within ten seconds. It may log in again, unless its person is disabled."
          label="End it"
          note="no"
          hint=""
          send={() => request('DELETE', `${to}/${ending.session_id}`)}
          onDone={() => {
            toast({ text: `The session of ${shown(ending.name ?? '')} ends within ten seconds.` })
            configChanged()
          }}
          onClose={() => setEnding(undefined)}
        />
      )}
    </section>
  )
}
