// Actions: everything that was proposed, newest first, as it stands now.
import { memo } from 'react'
import { useLocation } from 'wouter'
import type { Schemas } from '../../lib/client'
import { query, set } from '../../lib/filter'
import { changes } from '../../lib/live'
import { patchAll } from '../../lib/reduce'
import { shown } from '../../lib/text'
import { Button, Empty, Risk, State, Time } from '../../ui'
import { FilterBar, useFilter } from '../../ui/filter'
import { Waits } from '../../ui/waiting'
import './actions.css'
import { fields, views } from './fields'
import { Listing } from './listing'
import { useRows } from './rows'

type Action = Schemas['Action']

const to = '/api/v1/actions'
const keyOf = (action: Action) => action.envelope.action_id
const patch = (rows: readonly Action[], after: number) => patchAll(rows, changes, after)

export default function Actions() {
  const filter = useFilter(fields)
  const [, go] = useLocation()
  const asked = query(fields, filter.filter)
  const order = filter.filter.order === 'oldest' ? 'oldest' : 'newest'
  const rows = useRows<Action>({
    name: 'actions',
    to,
    query: asked,
    key: keyOf,
    order,
    patch,
    view: 'summary',
    enabled: filter.problems.length === 0,
  })
  return (
    <div className="page page-list">
      <header className="page-head">
        <h1>Actions</h1>
        <Phases
          chosen={filter.filter.phase}
          onChoose={(phases) => filter.change(set(filter.filter, 'phase', phases))}
        />
      </header>
      <FilterBar fields={fields} read={filter} onChange={filter.change} to={to} />
      {filter.problems.length === 0 && (
        <Listing
          of="actions"
          asked={asked}
          rows={rows}
          keyOf={keyOf}
          row={(action) => <Row action={action} />}
          onOpen={(id) => go(`/actions/${id}`)}
          onClear={() => filter.change({})}
          nothing={<Nothing />}
        />
      )}
    </div>
  )
}

function Phases({
  chosen,
  onChoose,
}: {
  chosen: string | readonly string[] | undefined
  onChoose: (phases: readonly string[]) => void
}) {
  const now = [...(chosen ?? [])].join()
  return (
    <div className="row" role="group" aria-label="Phase">
      {views.map(({ label, phases }) => (
        <Button
          key={label}
          kind="quiet"
          aria-pressed={[...phases].toSorted(byPlace).join() === now}
          onClick={() => onChoose(phases)}
        >
          {label}
        </Button>
      ))}
    </div>
  )
}

const places = fields.find((f) => f.name === 'phase')!.choices!
const byPlace = (a: string, b: string) => places.indexOf(a) - places.indexOf(b)

// Row is one action in a line: how it stands, what it is, what holds it or why it did not happen, and whose it is.
const Row = memo(function Row({ action }: { action: Action }) {
  const { envelope, phase, waiting } = action
  const { error } = envelope.result
  return (
    <span className="action-row">
      <State state={phase === 'completed' && envelope.result.status === 'conflict' ? 'conflict' : phase} />
      <span className="action-tool mono cut">{shown(`${envelope.tool.source ?? ''}:${envelope.tool.name}`)}</span>
      <bdi className="action-args cut">{shown(action.headline ?? '')}</bdi>
      <span className="action-why cut">
        {waiting ? (
          <Waits waiting={waiting} expires={action.decision?.expires_at} />
        ) : (
          error && <span title={shown(error.message)}>{shown(error.code.replaceAll('_', ' '))}</span>
        )}
      </span>
      <span className="action-whose muted cut">{shown(envelope.automation_id ?? envelope.session_id ?? '')}</span>
      <Risk risk={envelope.risk} />
      <span className="action-at muted nowrap">
        <Time at={envelope.timestamps.created_at} as="clock" />
      </span>
    </span>
  )
})

function Nothing() {
  return (
    <Empty title="No actions yet">
      <p>Calls that agents propose are listed here, with their outcomes. Propose one to see it:</p>
      <pre className="json" tabIndex={0}>
        {"countersign actions run SOURCE:TOOL --inputs '{…}'"}
      </pre>
    </Empty>
  )
}
