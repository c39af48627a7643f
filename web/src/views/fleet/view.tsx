// The fleet: what waits and why, what holds it back, and the switches that stop it.
import './fleet.css'
import { useQuery } from '@tanstack/react-query'
import { get, type Problem } from '../../lib/client'
import { type Field, set } from '../../lib/filter'
import { useCommands } from '../../lib/keys'
import { useMay } from '../../lib/me'
import { usePreferences } from '../../lib/preferences'
import { shown } from '../../lib/text'
import { clock, useNow } from '../../lib/time'
import { Button, Loading, ProblemNote, State, Table, Time } from '../../ui'
import { useFilter } from '../../ui/filter'
import { Activity } from './activity'
import { Pauses } from './pauses'
import { type Overview, sentence } from './say'
import { Stop } from './stop'
import { Waiting } from './waiting'
import { Workers } from './workers'

const fields: readonly Field[] = [
  { name: 'stop', label: 'Stop', kind: 'choice', choices: ['pause', 'kill'], view: true },
  { name: 'range', label: 'Range', kind: 'choice', choices: ['hour', 'day'], view: true },
  { name: 'past', label: 'Past pauses', kind: 'choice', choices: ['true'], view: true },
]

// every is how often the state is read: no event tells that time has passed.
export const every = 5_000

export default function View() {
  const { filter, change } = useFilter(fields)
  const may = useMay()
  const overview = useQuery<Overview, Problem>({
    queryKey: ['config', 'overview'],
    queryFn: ({ signal }) => get<Overview>('/api/v1/overview', {}, signal),
    refetchInterval: every,
  })
  const open = (which: string) => change(set(filter, 'stop', which), { replace: which === '' })
  const whyNot = may('pause')
  useCommands([{ id: 'refresh', run: () => void overview.refetch() }])
  const { data, error } = overview
  return (
    <div className="page">
      <header className="page-head">
        <h1 className="grow">Fleet</h1>
        <Button icon="pause" whyNot={whyNot} onClick={() => open('pause')}>
          Pause…
        </Button>
        <Button icon="barred" kind="danger" whyNot={whyNot} onClick={() => open('kill')}>
          Kill…
        </Button>
      </header>
      {error && <ProblemNote error={error} what="The state was not read" onRetry={() => void overview.refetch()} />}
      {!data && !error && <Loading what="the state" />}
      {data && <Sentence overview={data} />}
      {data && <Waiting overview={data} />}
      <Pauses past={filter.past === 'true'} onPast={(past) => change(set(filter, 'past', past ? 'true' : ''))} />
      {data && data.breakers.length > 0 && <Breakers overview={data} />}
      <Activity
        range={filter.range === 'day' ? 'day' : 'hour'}
        onRange={(range) => change(set(filter, 'range', range === 'day' ? range : ''))}
      />
      <Workers />
      {(filter.stop === 'pause' || filter.stop === 'kill') && (
        <Stop key={filter.stop} kill={filter.stop === 'kill'} onClose={() => open('')} />
      )}
    </div>
  )
}

function Sentence({ overview }: { overview: Overview }) {
  const { zone } = usePreferences()
  const now = useNow(60_000)
  return <p className="fleet-sentence">{shown(sentence(overview, (at) => clock(at, zone, now)))}</p>
}

const breakerStates: Record<string, [state: string, word: string]> = {
  open: ['failed', 'open'],
  'half-open': ['waiting', 'half-open'],
  closed: ['completed', 'closed'],
}

function Breakers({ overview }: { overview: Overview }) {
  return (
    <section className="panel stack" aria-labelledby="breakers">
      <h2 id="breakers">Breakers</h2>
      <Table
        caption="Breakers"
        rows={overview.breakers}
        keyOf={(b) => b.source}
        columns={[
          { name: 'Source', cell: (b) => <code>{shown(b.source)}</code> },
          {
            name: 'State',
            cell: (b) => <State state={breakerStates[b.state]?.[0] ?? b.state} word={breakerStates[b.state]?.[1]} />,
          },
          { name: 'Until', cell: (b) => b.state === 'open' && <Time at={b.open_until} as="both" /> },
          { name: 'Cause', hideNarrow: true, cell: (b) => shown(b.cause) },
          { name: 'Openings', number: true, hideNarrow: true, cell: (b) => Number(b.openings).toLocaleString('en') },
        ]}
      />
    </section>
  )
}
