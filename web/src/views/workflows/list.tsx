import { useState } from 'react'
import { useLocation } from 'wouter'
import type { Schemas } from '../../lib/client'
import { query, set, type Field } from '../../lib/filter'
import { useCommands } from '../../lib/keys'
import { useNarrow } from '../../lib/media'
import { useSteady } from '../../lib/steady'
import { shown } from '../../lib/text'
import { Button, Empty, List, Loading, ProblemNote, Time } from '../../ui'
import { FilterBar, useFilter } from '../../ui/filter'
import { End } from '../actions/end'
import { useRows } from '../actions/rows'
import { WorkflowState } from './state'

type Workflow = Schemas['Workflow']

const to = '/api/v1/workflows'
const keyOf = (workflow: Workflow) => workflow.workflow_id

const fields: readonly Field[] = [
  { name: 'state', label: 'State', kind: 'choice', choices: ['running', 'reverting', 'stuck', 'compensation_failed', 'completed', 'failed', 'cancelled', 'reverted', 'resolved'] },
  { name: 'needs_operator', label: 'Needs an operator', kind: 'choice', choices: ['true', 'false'] },
  { name: 'session_id', label: 'Session', kind: 'text' },
  { name: 'external_id', label: 'External id', kind: 'text' },
]

// Workflows lists them, newest first.
export function Workflows() {
  const filter = useFilter(fields)
  const [, go] = useLocation()
  const asked = query(fields, filter.filter)
  const rows = useRows<Workflow>({ name: 'workflows', to, query: asked, key: keyOf, enabled: filter.problems.length === 0 })
  const { rows: items, fresh, showNew } = useSteady(JSON.stringify(asked), rows.items, keyOf)
  const [selected, setSelected] = useState<string>()
  const narrow = useNarrow()
  useCommands([{ id: 'show_new', whyNot: fresh === 0 ? 'Nothing is new.' : undefined, run: showNew }])
  const needs = filter.filter.needs_operator === 'true'
  return (
    <div className="page page-list">
      <header className="page-head">
        <h1>Workflows</h1>
        <div className="row" role="group" aria-label="Which">
          <Button kind="quiet" aria-pressed={!needs} onClick={() => filter.change(set(filter.filter, 'needs_operator', ''))}>All</Button>
          <Button kind="quiet" aria-pressed={needs} onClick={() => filter.change(set(filter.filter, 'needs_operator', 'true'))}>Needs an operator</Button>
        </div>
      </header>
      <FilterBar fields={fields} read={filter} onChange={filter.change} to={to} />
      {fresh > 0 && <Button className="fresh-button" icon="up" command="show_new" onClick={showNew}>{fresh} new</Button>}
      {rows.error && <ProblemNote error={rows.error} what="The workflows were not loaded" onRetry={rows.again} />}
      {rows.loading && filter.problems.length === 0 && !rows.error && <Loading what="workflows" />}
      {rows.items && filter.problems.length === 0 && (items.length === 0 && rows.ended === 'end' ? <Nothing filtered={Object.keys(asked).length > 0} onClear={() => filter.change({})} /> : (
        <div className="panel list-panel">
          <List
            label="Workflows" items={items} keyOf={keyOf} selected={selected} onSelect={setSelected} rowHeight={narrow ? 76 : 40}
            onOpen={(id) => go(`/workflows/${id}`)} onEnd={rows.more} row={(workflow) => <Row workflow={workflow} />}
          />
          <End rows={rows} count={items.length} of="workflows" />
        </div>
      ))}
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
      <span className="nowrap muted">{done} of {workflow.steps.length} steps{workflow.atomic && ', atomic'}</span>
      <span className="cut">{workflow.code ? shown(workflow.code.replaceAll('_', ' ')) : ''}</span>
      <span className="muted nowrap action-at"><Time at={workflow.created_at} as="clock" /></span>
    </span>
  )
}

function Nothing({ filtered, onClear }: { filtered: boolean; onClear: () => void }) {
  if (filtered) {
    return (
      <Empty title="No workflow is like this">
        <p>The filter is in force as you see it.</p>
        <Button onClick={onClear}>Clear the filter</Button>
      </Empty>
    )
  }
  return (
    <Empty title="No workflows yet">
      <p>A workflow is a list of calls in which later calls use what earlier ones answered. Run one to see it here:</p>
      <pre className="json" tabIndex={0}>countersign workflow run onboarding.json --external-id onboard-4711</pre>
    </Empty>
  )
}
