// Breakers: the sources that failed, and whether calls to them go out.
import { useState } from 'react'
import { post, type Schemas } from '../../lib/client'
import { useMay } from '../../lib/me'
import { configChanged } from '../../lib/query'
import { shown } from '../../lib/text'
import { Ask, Button, Command, Empty, Loading, ProblemNote, State, Table, Time, toast } from '../../ui'
import { usePages } from './pages'

type Breaker = Schemas['Breaker']

const states = { closed: 'completed', 'half-open': 'waiting', open: 'failed' }

export function Breakers() {
  const may = useMay()
  const breakers = usePages<Breaker>('breakers', 5_000)
  const [resetting, setResetting] = useState<Breaker>()
  const rows = breakers.data
  return (
    <>
      <p className="muted">A source that fails again and again is left alone for a while; its actions wait.</p>
      {breakers.isPending && <Loading what="breakers" />}
      {breakers.error && <ProblemNote error={breakers.error} onRetry={() => void breakers.refetch()} />}
      {rows?.length === 0 && (
        <Empty title="No breaker has opened so far">
          <p>Sources that fail appear here.</p>
        </Empty>
      )}
      {rows && rows.length > 0 && (
        <Table
          caption="Breakers"
          rows={rows}
          keyOf={(one) => one.source}
          columns={[
            { name: 'Source', cell: (one) => <span className="mono">{shown(one.source)}</span> },
            { name: 'State', cell: (one) => <State state={states[one.state]} word={one.state} /> },
            { name: 'Cause', cell: (one) => shown(one.cause) },
            { name: 'Since', cell: (one) => <Time at={one.since} />, hideNarrow: true },
            {
              name: 'Until',
              cell: (one) => (one.state === 'open' ? <Time at={one.open_until} /> : ''),
              hideNarrow: true,
            },
            { name: 'Openings', cell: (one) => one.openings, number: true, hideNarrow: true },
            {
              name: 'Reset',
              unnamed: true,
              cell: (one) => (
                <Button
                  whyNot={may('resetBreaker') ?? (one.state === 'closed' ? 'It is closed.' : undefined)}
                  onClick={() => setResetting(one)}
                >
                  Reset…<span className="unseen"> {shown(one.source)}</span>
                </Button>
              ),
            },
          ]}
        />
      )}
      <Command of="countersign breaker reset SOURCE" />
      {resetting && (
        <Ask
          title={`Reset the breaker of ${shown(resetting.source)}?`}
          text="Calls go out at once. If the source still fails, the breaker opens again."
          label="Reset"
          note="no"
          hint=""
          send={() => post(`/api/v1/breakers/${encodeURIComponent(resetting.source)}/reset`)}
          onDone={() => {
            toast({ text: `The breaker of ${shown(resetting.source)} is closed.` })
            configChanged()
          }}
          onClose={() => setResetting(undefined)}
        />
      )}
    </>
  )
}
