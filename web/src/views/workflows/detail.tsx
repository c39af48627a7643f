// One workflow: its steps on the way down, their reversals on the way up, and what a person can do about it.
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link, useLocation } from 'wouter'
import { personOf } from '../../lib/actor'
import { give, ofReversal, type Answer as Settled } from '../../lib/answers'
import { get, type Problem, post, type Schemas } from '../../lib/client'
import { useCommands } from '../../lib/keys'
import { type OperationID, useMay } from '../../lib/me'
import { queries } from '../../lib/query'
import { shown } from '../../lib/text'
import { Ask, Button, Chip, Empty, JsonText, Loading, ProblemNote, Shown, State, Time } from '../../ui'
import { answers, ladder, type Mark, meaning, type Rung } from './ladder'
import { WorkflowState } from './state'

type Workflow = Schemas['Workflow']

const at = (id: string) => `/api/v1/workflows/${encodeURIComponent(id)}`

export function Detail({ id }: { id: string }) {
  const [, go] = useLocation()
  const workflow = useQuery<Workflow, Problem>({
    queryKey: ['workflow', id],
    queryFn: ({ signal }) => get<Workflow>(at(id), {}, signal),
  })
  useCommands([{ id: 'back', run: () => go('/workflows') }])
  const { data, error } = workflow
  if (!data && error && (error.status === 404 || error.status === 400)) {
    return (
      <Empty whole title="Workflow not found, or you have no access to it">
        <p>
          <code>{shown(id)}</code>
        </p>
        <Link href="/workflows">All workflows</Link>
      </Empty>
    )
  }
  if (!data)
    return error ? (
      <div className="page">
        <ProblemNote whole error={error} what="The workflow was not loaded" onRetry={() => void workflow.refetch()} />
      </div>
    ) : (
      <Loading what="the workflow" />
    )
  return (
    <div className="page">
      <header className="stack">
        <p className="small">
          <Link href="/workflows">Workflows</Link>
        </p>
        <div className="page-head">
          <h1 className="title">
            <Shown text={data.external_id || data.workflow_id} />
          </h1>
          <WorkflowState state={data.state} />
          {data.atomic && <Chip>atomic: all or nothing</Chip>}
        </div>
        <p className="muted">
          {meaning(data.state)}
          {data.ended_at && (
            <>
              ; ended <Time at={data.ended_at} as="both" />
            </>
          )}
        </p>
        {data.code && (
          <p>
            <code>{shown(data.code)}</code> <Shown text={data.message ?? ''} />
          </p>
        )}
        <Doing workflow={data} />
        {error && <ProblemNote error={error} what="Not updated: showing earlier data" />}
      </header>
      <section className="panel stack" aria-labelledby="steps">
        <h2 id="steps">Steps</h2>
        <Ladder workflow={data} />
      </section>
      <Facts workflow={data} />
    </div>
  )
}

type Answer = 'cancel' | 'retry' | 'resolve' | 'abandon'

interface Offer {
  label: string
  operation: OperationID
  title: string
  text: string
  note: 'no' | 'may' | 'must'
  send: (id: string, note: string) => Promise<Workflow>
}

const settled = ([resolve, abandon]: readonly Settled[]): Record<'resolve' | 'abandon', Offer> => ({
  resolve: {
    ...resolve!,
    title: 'I reverted the step myself',
    note: 'must',
    send: (id, note) => give(resolve!, id, note),
  },
  abandon: {
    ...abandon!,
    title: 'End the workflow as it is',
    note: 'must',
    send: (id, note) => give(abandon!, id, note),
  },
})

const offers: Record<Answer, Offer> = {
  cancel: {
    label: 'Cancel',
    operation: 'cancelWorkflow',
    title: 'Cancel this workflow',
    note: 'no',
    text:
      'The current step is undone if it was not sent; otherwise it finishes. ' +
      'An atomic workflow is then reverted; any other stays as it is.',
    send: (id) => post(`${at(id)}/cancel`),
  },
  retry: {
    label: 'Retry the reversal',
    operation: 'retryWorkflow',
    title: 'Propose the reversal again',
    note: 'may',
    text: 'The failed reversal is proposed again, as the catalog declares it now.',
    send: (id, note) => post(`${at(id)}/retry`, note ? { note } : {}),
  },
  ...settled(ofReversal),
}

// Doing offers what the state allows. A state without an answer has no buttons.
function Doing({ workflow }: { workflow: Workflow }) {
  const [open, setOpen] = useState<Answer>()
  const may = useMay()
  const can = answers(workflow)
  const done = (now: Workflow) => {
    queries.setQueryData(['workflow', workflow.workflow_id], now)
    void queries.invalidateQueries({ queryKey: ['workflows'] })
  }
  const all = (Object.keys(offers) as Answer[]).filter((answer) => can[answer])
  return (
    <>
      <div className="row">
        {all.map((answer) => (
          <Button key={answer} whyNot={may(offers[answer].operation)} onClick={() => setOpen(answer)}>
            {offers[answer].label}…
          </Button>
        ))}
        {workflow.state === 'stuck' && workflow.waits_for && (
          <Link className="button primary" href={`/dead-letters/${workflow.waits_for}`}>
            Resolve the call
          </Link>
        )}
      </div>
      {open && (
        <Ask
          {...offers[open]}
          hint="Reason, for the audit log."
          send={(note) => offers[open].send(workflow.workflow_id, note)}
          onDone={done}
          onClose={() => setOpen(undefined)}
        />
      )}
    </>
  )
}

const words: Record<Mark | 'kept', [like: string, down: string, up: string]> = {
  planned: ['stopped', 'comes later', 'will be reverted'],
  running: ['running', 'runs or waits', 'is being reverted'],
  done: ['completed', 'done', 'reverted'],
  failed: ['failed', 'did not succeed', 'could not be reverted'],
  skipped: ['skipped', 'skipped', 'skipped'],
  resolved: ['stopped', 'resolved', 'resolved by a person'],
  kept: ['conflict', 'done', 'nothing to revert'],
}

function Ladder({ workflow }: { workflow: Workflow }) {
  const rungs = ladder(workflow)
  const goesBack = rungs.some((r) => r.back)
  return (
    <ol className={`ladder ${goesBack ? 'ladder-both' : ''}`}>
      {rungs.map((rung) => (
        <Step key={rung.step.step} rung={rung} goesBack={goesBack} />
      ))}
    </ol>
  )
}

function Step({ rung: { step, forward, back, here }, goesBack }: { rung: Rung; goesBack: boolean }) {
  const [like, down] = words[forward]
  return (
    <li className={`rung ${here ? 'rung-here' : ''}`} aria-current={here ? 'step' : undefined}>
      <div className={`rung-down mark-${forward}`}>
        <div className="row">
          <span className="rung-number" aria-hidden="true">
            {Number(step.step) + 1}
          </span>
          <span className="mono">
            <Shown text={step.tool} />
          </span>
          <State state={like} word={down} />
          {step.action_id && <Link href={`/actions/${step.action_id}`}>its action</Link>}
        </div>
        {step.code && (
          <p className="small">
            <code>{shown(step.code)}</code> <Shown text={step.message ?? ''} />
          </p>
        )}
        <div className="row">
          <details className="open">
            <summary>Inputs</summary>
            <JsonText value={step.inputs} label={`Inputs of step ${Number(step.step) + 1}`} />
          </details>
          {step.outputs !== undefined && (
            <details className="open">
              <summary>Answer</summary>
              <JsonText value={step.outputs} label={`Answer of step ${Number(step.step) + 1}`} />
            </details>
          )}
        </div>
      </div>
      {goesBack && (
        <div className={`rung-up ${back ? `mark-${back.mark}` : ''}`}>
          {back && (
            <div className="row">
              <State
                state={words[back.mark][0] === 'completed' ? 'reverted' : words[back.mark][0]}
                word={words[back.mark][2]}
              />
              {back.tool && (
                <span className="mono">
                  <Shown text={back.tool} />
                </span>
              )}
              {back.action && <Link href={`/actions/${back.action}`}>its action</Link>}
            </div>
          )}
        </div>
      )}
    </li>
  )
}

function Facts({ workflow }: { workflow: Workflow }) {
  const facts: [string, React.ReactNode][] = [
    ['Workflow id', <code>{workflow.workflow_id}</code>],
    [
      'Proposed by',
      <span title={shown(workflow.proposed_by)}>
        <Shown text={personOf(workflow.proposed_by)} />
      </span>,
    ],
    ['Proposed', <Time at={workflow.created_at} as="both" />],
    ['Session', workflow.session_id && <Shown text={workflow.session_id} />],
    ['Automation', workflow.automation_id && <Shown text={workflow.automation_id} />],
    [
      'Waits for',
      workflow.waits_for && (
        <Link href={`/actions/${workflow.waits_for}`}>
          <code>{workflow.waits_for}</code>
        </Link>
      ),
    ],
    ['Canceled by', workflow.cancelled_by && <Shown text={personOf(workflow.cancelled_by)} />],
    ['Resolved by', workflow.resolved_by && <Shown text={personOf(workflow.resolved_by)} />],
    ['Note', workflow.note && <Shown text={workflow.note} lines />],
    ['Actions', <Link href={`/actions?workflow_id=${workflow.workflow_id}`}>of this workflow</Link>],
  ]
  return (
    <section className="panel stack" aria-labelledby="facts">
      <h2 id="facts">Facts</h2>
      <dl className="fact-list">
        {facts
          .filter(([, value]) => value)
          .map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
      </dl>
    </section>
  )
}
