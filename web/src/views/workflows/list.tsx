import { useLocation } from 'wouter'
import type { Schemas } from '../../lib/client'
import { type Field, query, set } from '../../lib/filter'
import { shown } from '../../lib/text'
import { Button, Empty, Time } from '../../ui'
import { FilterBar, useFilter } from '../../ui/filter'
import { Listing } from '../actions/listing'
import { useRows } from '../actions/rows'
import { WorkflowState } from './state'

type Workflow = Schemas['Workflow']

const to = '/api/v1/workflows'
const keyOf = (workflow: Workflow) => workflow.workflow_id

const fields: readonly Field[] = [
  {
    name: 'state',
    label: 'State',
    kind: 'choice',
    choices: [
      'running',
      'reverting',
      'stuck',
      'compensation_failed',
      'completed',
      'failed',
      'cancelled',
      'reverted',
      'resolved',
    ],
  },
  { name: 'needs_operator', label: 'Needs an operator', kind: 'choice', choices: ['true', 'false'] },
  { name: 'session_id', label: 'Session', kind: 'text' },
  { name: 'external_id', label: 'External id', kind: 'text' },
]

// Workflows lists them, newest first.
export function Workflows() {
  const filter = useFilter(fields)
  const [, go] = useLocation()
  const asked = query(fields, filter.filter)
  const rows = useRows<Workflow>({
    name: 'workflows',
    to,
    query: asked,
    key: keyOf,
    enabled: filter.problems.length === 0,
  })
  const needs = filter.filter.needs_operator === 'true'
  return (
    <div className="page page-list">
      <header className="page-head">
        <h1>Workflows</h1>
        <div className="row" role="group" aria-label="Which">
          <Button
            kind="quiet"
            aria-pressed={!needs}
            onClick={() => filter.change(set(filter.filter, 'needs_operator', ''))}
          >
            All
          </Button>
          <Button
            kind="quiet"
            aria-pressed={needs}
            onClick={() => filter.change(set(filter.filter, 'needs_operator', 'true'))}
          >
            Needs an operator
          </Button>
        </div>
      </header>
      <FilterBar fields={fields} read={filter} onChange={filter.change} to={to} />
      {filter.problems.length === 0 && (
        <Listing
          of="workflows"
          asked={asked}
          rows={rows}
          keyOf={keyOf}
          row={(workflow) => <Row workflow={workflow} />}
          onOpen={(id) => go(`/workflows/${id}`)}
          onClear={() => filter.change({})}
          nothing={<Nothing />}
        />
      )}
    </div>
  )
}

const overStates = new Set(['done', 'kept', 'reverted', 'resolved'])

function Row({ workflow }: { workflow: Workflow }) {
  const done = workflow.steps.filter((s) => overStates.has(s.state)).length
  return (
    <span className="workflow-row">
      <WorkflowState state={workflow.state} />
      <bdi className="cut">{shown(workflow.external_id)}</bdi>
      <span className="mono cut workflow-tools">{shown(workflow.steps.map((s) => s.tool).join(' → '))}</span>
      <span className="nowrap muted">
        {done} of {workflow.steps.length} steps{workflow.atomic && ', atomic'}
      </span>
      <span className="cut">{workflow.code ? shown(workflow.code.replaceAll('_', ' ')) : ''}</span>
      <span className="muted nowrap action-at">
        <Time at={workflow.created_at} as="clock" />
      </span>
    </span>
  )
}

function Nothing() {
  return (
    <Empty title="No workflows yet">
      <p>A workflow is a list of calls in which later calls use the results of earlier ones. Run one to see it here:</p>
      <pre className="json" tabIndex={0}>
        countersign workflow run onboarding.json --external-id onboard-4711
      </pre>
    </Empty>
  )
}
