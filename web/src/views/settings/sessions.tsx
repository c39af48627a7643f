import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { get, request, type Schemas } from '../../lib/client'
import { usePreferences } from '../../lib/preferences'
import { queries } from '../../lib/query'
import { logout } from '../../lib/session'
import { shown } from '../../lib/text'
import { absolute } from '../../lib/time'
import { Button, Chip, Loading, ProblemNote, Table, Time, toast } from '../../ui'

type Session = Schemas['BrowserSession']

export const ways = { oidc: 'the organisation’s login', code: 'a one-time code', token: 'a token' }

const shownFirst = 5

// Sessions lists the caller's sessions in browsers, and ends them.
export function Sessions() {
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
export function browserOf(program: string): string {
  const system = /\b(Windows|Mac OS X|Android|iPhone|iPad|Linux)\b/.exec(program)?.[1]
  const name = /\b(Edg|OPR|Firefox|Chrome|HeadlessChrome|Safari)\//.exec(program)?.[1]
  const called = { Edg: 'Edge', OPR: 'Opera' }[name ?? ''] ?? name
  return [called ?? (program || 'unknown'), system && `on ${system}`].filter(Boolean).join(' ')
}
