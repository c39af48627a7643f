import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { personOf } from '../../lib/actor'
import { get, type Problem, request, type Schemas } from '../../lib/client'
import { useMay } from '../../lib/me'
import { configChanged } from '../../lib/query'
import { shown } from '../../lib/text'
import { Ask, Button, Loading, ProblemNote, State, Table, Time, toast } from '../../ui'
import { nameOf } from './say'

type Pause = Schemas['Pause']

const most = 200

// Pauses lists the pauses that hold, or the past ones as well.
export function Pauses({ past, onPast }: { past: boolean; onPast: (past: boolean) => void }) {
  const [lifting, setLifting] = useState<Pause>()
  const may = useMay()
  const pauses = useQuery<{ items: Pause[]; next_cursor: string | null }, Problem>({
    queryKey: ['config', 'pauses', past],
    queryFn: ({ signal }) => get('/api/v1/pauses', { limit: most, ...(past ? {} : { active: 'true' }) }, signal),
    // The sweep of a kill goes on behind its answer.
    refetchInterval: ({ state }) =>
      state.data?.items.some((p) => p.kill && !p.swept_at && !p.lifted_at) ? 1_000 : false,
  })
  const { data, error } = pauses
  const whyNot = (p: Pause) =>
    p.scope === 'everything'
      ? 'Only an operator of the deployment lifts a pause of everything.'
      : (may('resume') ??
        (p.needs_policy_write ? may('putMode') && 'Set by an administrator: it takes policy:write.' : undefined))
  return (
    <section className="panel stack" aria-labelledby="pauses">
      <div className="page-head">
        <h2 id="pauses" className="grow">
          Pauses
        </h2>
        <label className="row">
          <input type="checkbox" checked={past} onChange={(e) => onPast(e.target.checked)} /> Past ones
        </label>
      </div>
      {error && <ProblemNote error={error} what="The pauses were not read" onRetry={() => void pauses.refetch()} />}
      {!data && !error && <Loading what="the pauses" />}
      {data && data.items.length === 0 && <p className="muted">Nothing is paused.</p>}
      {data && data.items.length > 0 && (
        <Table
          caption="Pauses"
          rows={data.items}
          keyOf={(p) => p.pause_id}
          columns={[
            {
              name: 'Target',
              cell: (p) => (
                <>
                  {p.scope} <code>{shown(p.subject ?? '')}</code>
                  <bdi className="small muted pause-reason">{shown(p.reason)}</bdi>
                </>
              ),
            },
            { name: 'State', cell: (p) => <PauseState pause={p} /> },
            {
              name: 'By',
              hideNarrow: true,
              cell: (p) => (
                <>
                  {shown(personOf(p.by))}{' '}
                  <span className="muted nowrap">
                    <Time at={p.at} />
                  </span>
                </>
              ),
            },
            {
              name: 'Resume',
              unnamed: true,
              cell: (p) =>
                !p.lifted_at && (
                  <Button
                    icon="play"
                    whyNot={whyNot(p)}
                    aria-label={`Resume ${nameOf(p)}`}
                    onClick={() => setLifting(p)}
                  >
                    Resume…
                  </Button>
                ),
            },
          ]}
        />
      )}
      {data?.next_cursor && <p className="muted">These are the newest {most}.</p>}
      {lifting && (
        <Ask
          title={`Resume ${shown(nameOf(lifting))}`}
          text={`Held actions go on${lifting.kill ? '; those that the kill ended stay ended' : ''}.`}
          label="Resume"
          note="may"
          hint="Reason, for the audit log."
          send={(reason) => request('DELETE', `/api/v1/pauses/${lifting.pause_id}`, { query: { reason } })}
          onDone={() => {
            toast({ text: `Resumed: ${nameOf(lifting)}` })
            configChanged()
          }}
          onClose={() => setLifting(undefined)}
        />
      )}
    </section>
  )
}

function PauseState({ pause }: { pause: Pause }) {
  const ended = Number(pause.cancelled)
  if (pause.lifted_at) return <State state="completed" word="lifted" />
  if (!pause.kill) return <State state="paused" word={pause.travelling ? 'travelling' : 'paused'} />
  const count = `${ended.toLocaleString('en')} ended`
  return (
    <State
      state={pause.swept_at ? 'denied' : 'running'}
      word={pause.swept_at ? `killed, ${count}` : `kills, ${count}`}
    />
  )
}
