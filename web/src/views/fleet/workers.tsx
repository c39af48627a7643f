import { useQuery } from '@tanstack/react-query'
import { get, type Problem, type Schemas } from '../../lib/client'
import { useMay } from '../../lib/me'
import { shown } from '../../lib/text'
import { Empty, Loading, ProblemNote, State, Table, Time } from '../../ui'
import { Command } from '../../ui/command'

type Worker = Schemas['Worker']

// Workers lists the processes of the fleet, to the people who may see them.
export function Workers() {
  const whyNot = useMay()('listWorkers')
  const workers = useQuery<{ items: Worker[] }, Problem>({
    queryKey: ['config', 'workers'],
    enabled: !whyNot,
    queryFn: ({ signal }) => get<{ items: Worker[] }>('/api/v1/workers', {}, signal),
    refetchInterval: 10_000,
  })
  const { data, error } = workers
  return (
    <section className="panel stack" aria-labelledby="workers">
      <h2 id="workers">Workers</h2>
      {whyNot && <p className="muted">{whyNot}</p>}
      {error && <ProblemNote error={error} what="The workers were not read" onRetry={() => void workers.refetch()} />}
      {!data && !error && !whyNot && <Loading what="the workers" />}
      {data && data.items.length === 0 && (
        <Empty title="No worker runs">
          <p>Nothing is sent. A worker that starts takes the due actions.</p>
        </Empty>
      )}
      {data && data.items.length > 0 && (
        <Table
          caption="Workers"
          rows={data.items}
          keyOf={(w) => w.worker_id}
          columns={[
            { name: 'Worker', cell: (w) => <bdi className="mono">{shown(w.name)}</bdi> },
            { name: 'State', cell: (w) => <WorkerState worker={w} /> },
            {
              name: 'In flight',
              number: true,
              cell: (w) =>
                Number(w.in_flight).toLocaleString('en') +
                (Number(w.concurrency) > 0 ? ` of ${Number(w.concurrency).toLocaleString('en')}` : ''),
            },
            { name: 'Host', hideNarrow: true, cell: (w) => <bdi className="mono">{shown(w.host)}</bdi> },
            { name: 'Version', hideNarrow: true, cell: (w) => <code>{shown(w.version)}</code> },
            { name: 'Started', hideNarrow: true, cell: (w) => <Time at={w.started_at} /> },
            { name: 'Seen', hideNarrow: true, cell: (w) => <Time at={w.seen_at} /> },
          ]}
        />
      )}
      <Command of="countersign workers" />
    </section>
  )
}

function WorkerState({ worker }: { worker: Worker }) {
  if (worker.refuses) return <State state="failed" word={`claims nothing: ${shown(worker.refuses)}`} />
  return worker.draining ? <State state="stopped" word="draining" /> : <State state="running" word="works" />
}
