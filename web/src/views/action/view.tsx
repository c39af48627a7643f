// One action: its whole way from the proposal to its end, what was sent, why policy let it through, and what belongs to
// it.
import { Link } from 'wouter'
import { personOf } from '../../lib/actor'
import type { Problem } from '../../lib/client'
import { shown } from '../../lib/text'
import { duration } from '../../lib/time'
import { Empty, JsonText, Loading, ProblemNote, Risk, Shown, State, Time } from '../../ui'
import { Waits } from '../../ui/waiting'
import { Detail } from '../inbox/Detail'
import { Lookalikes } from '../inbox/Lookalikes'
import '../inbox/inbox.css'
import '../../form/form.css'
import './action.css'
import { Bar } from './bar'
import { Doing } from './doing'
import { Way } from './list'
import { type Action as ActionType, type Execution, useAction, useExecution, useHistory } from './read'
import { Trace } from './trace'

export default function Action({ id }: { id: string }) {
  const action = useAction(id)
  if (action.error && !action.data)
    return <Missing error={action.error} id={id} onRetry={() => void action.refetch()} />
  if (!action.data) return <Loading what="the action" />
  return <Loaded key={id} action={action.data} error={action.error} />
}

function Missing({ error, id, onRetry }: { error: Problem; id: string; onRetry: () => void }) {
  if (error.status !== 404 && error.status !== 400)
    return (
      <div className="page">
        <ProblemNote whole error={error} what="The action was not loaded" onRetry={onRetry} />
      </div>
    )
  return (
    <Empty whole title="Action not found, or you have no access to it">
      <p>
        <code>{shown(id)}</code>
      </p>
      <Link href="/actions">All actions</Link>
    </Empty>
  )
}

const ends = new Set(['completed', 'denied', 'failed', 'expired', 'skipped', 'undone'])

function Loaded({ action, error }: { action: ActionType; error: Problem | null }) {
  const { envelope, phase } = action
  const id = envelope.action_id
  const history = useHistory(id)
  const execution = useExecution(id)
  // Whoever has the link decides here as in the inbox.
  const decides = phase === 'pending' || phase === 'unknown'
  return (
    <div className="page">
      <header className="stack">
        <p className="small">
          <Link href="/actions">Actions</Link>
        </p>
        <div className="page-head">
          <h1 className="title mono">
            <Shown text={`${envelope.tool.source ?? ''}:${envelope.tool.name}`} />
          </h1>
          <State state={phase === 'completed' && envelope.result.status === 'conflict' ? 'conflict' : phase} />
          <Risk risk={envelope.risk} />
          <span className="muted">{summary(action)}</span>
        </div>
        {action.headline && !decides && (
          <p className="headline">
            <Shown text={action.headline} />
          </p>
        )}
        {!decides && <Lookalikes of={action.lookalikes} />}
        <Doing action={action} />
        {error && <ProblemNote error={error} what="Not updated: showing earlier data" />}
        {action.waiting && (
          <p>
            <Waits waiting={action.waiting} expires={action.decision?.expires_at} />
          </p>
        )}
        {envelope.result.error && phase !== 'completed' && (
          <p>
            <code>{envelope.result.error.code}</code> <Shown text={envelope.result.error.message} />
          </p>
        )}
      </header>
      {decides && (
        <section className="panel decide-panel" aria-label="Decide">
          <Detail id={id} item={undefined} onDecided={() => undefined} />
        </section>
      )}
      <section className="panel stack" aria-labelledby="way">
        <h2 id="way">What happened</h2>
        {history.error && (
          <ProblemNote error={history.error} what="The history was not loaded" onRetry={() => void history.refetch()} />
        )}
        {history.isPending && <Loading what="the history" />}
        {history.data && (
          <>
            <Bar items={history.data.items} ended={ends.has(phase)} />
            <Way items={history.data.items} action={action} snapshots={execution.data?.snapshots ?? []} />
            {history.data.cut && (
              <p className="muted">
                Only the first events are shown. See the whole history with `countersign history`.
              </p>
            )}
          </>
        )}
      </section>
      {!decides && <Sent action={action} />}
      <Trace policy={action.policy} />
      <Facts action={action} execution={execution.data} />
      <Related
        action={action}
        execution={execution.data}
        error={execution.error}
        onRetry={() => void execution.refetch()}
      />
    </div>
  )
}

// Sent shows the arguments, those that were proposed if somebody changed them, and the answer.
function Sent({ action }: { action: ActionType }) {
  const { envelope } = action
  return (
    <section className="panel stack" aria-labelledby="args">
      <h2 id="args">{Number(envelope.result.attempts) > 0 ? 'What was sent' : 'What would be sent'}</h2>
      <JsonText value={envelope.args} label="Arguments" />
      {action.decision?.edited && (
        <details className="open">
          <summary>
            The proposal before <Shown text={personOf(action.decision.edited.by)} /> changed it
          </summary>
          <JsonText value={action.decision.edited.proposed_args} label="Arguments as proposed" />
        </details>
      )}
      {envelope.result.output !== undefined && (
        <>
          <h3>Answer</h3>
          <JsonText value={envelope.result.output} label="Answer" />
        </>
      )}
    </section>
  )
}

// summary tells the length of a whole way: "in 3 attempts, 2 h 4 min".
function summary({ envelope: { result, timestamps } }: ActionType): string {
  const attempts = Number(result.attempts)
  const tried = attempts === 0 ? '' : attempts === 1 ? 'in 1 attempt' : `in ${attempts} attempts`
  const end = timestamps.completed_at
  const long = end ? duration(Math.max(0, Date.parse(end) - Date.parse(timestamps.created_at))) : ''
  return [tried, long && `${long} from proposal to end`].filter(Boolean).join(', ')
}

function Facts({ action, execution }: { action: ActionType; execution: Execution | undefined }) {
  const { envelope, effect } = action
  const list = (name: string, value: string) => `/actions?${new URLSearchParams([[name, value]]).toString()}`
  const traceID = action.trace_id
  const facts: [name: string, value: React.ReactNode][] = [
    ['Action id', <code>{envelope.action_id}</code>],
    ['External id', envelope.external_id && <Shown text={envelope.external_id} />],
    ['Proposed by', execution?.user && <Shown text={execution.user.name} />],
    [
      'Channel',
      execution?.context && <Shown text={[execution.context.via, execution.context.ip].filter(Boolean).join(', ')} />,
    ],
    [
      'Session',
      envelope.session_id && (
        <Link href={list('session_id', envelope.session_id)}>
          <Shown text={envelope.session_id} />
        </Link>
      ),
    ],
    [
      'Automation',
      envelope.automation_id && (
        <Link href={list('automation_id', envelope.automation_id)}>
          <Shown text={envelope.automation_id} />
        </Link>
      ),
    ],
    [
      'Employee',
      envelope.employee_id && (
        <Link href={list('employee_id', envelope.employee_id)}>
          <code>{envelope.employee_id}</code>
        </Link>
      ),
    ],
    [
      'Workflow',
      execution?.workflow_id && (
        <Link href={`/workflows/${execution.workflow_id}`}>
          <code>{execution.workflow_id}</code>
        </Link>
      ),
    ],
    ['Effect', effect],
    ['Bucket', envelope.constraints.rate_bucket && <Shown text={envelope.constraints.rate_bucket} />],
    ['Not before', envelope.constraints.not_before && <Time at={envelope.constraints.not_before} as="both" />],
    [
      'Must run before',
      envelope.constraints.must_run_before && <Time at={envelope.constraints.must_run_before} as="both" />,
    ],
    ['Urgent', envelope.constraints.urgent && 'asks to be sent during quiet hours too'],
    ['Due', action.next_attempt_at && <Time at={action.next_attempt_at} as="both" />],
    ['Provider’s id', envelope.result.provider_id && <Shown text={envelope.result.provider_id} />],
    ['Trace id', traceID && <code>{shown(traceID)}</code>],
    ['Request id', execution?.context?.request_id && <code>{shown(execution.context.request_id)}</code>],
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

const relations: Record<string, string> = {
  workflow: 'another step of its workflow',
  reversal: 'reverts it',
  reverses: 'is reverted by it',
  repeat: 'the same call, proposed again',
  dry_run: 'a dry run of it',
}

function Related({
  action,
  execution,
  error,
  onRetry,
}: {
  action: ActionType
  execution: Execution | undefined
  error: Problem | null
  onRetry: () => void
}) {
  const related = execution?.related ?? []
  const { reverts, reverted_by } = action
  return (
    <section className="panel stack" aria-labelledby="related">
      <h2 id="related">Related actions</h2>
      {error && <ProblemNote error={error} what="Some parts were not loaded" onRetry={onRetry} />}
      {reverts && (
        <p>
          This action reverts{' '}
          <Link href={`/actions/${reverts}`}>
            <code>{reverts}</code>
          </Link>
          .
        </p>
      )}
      {reverted_by && (
        <p className="row">
          Its last reversal is{' '}
          <Link href={`/actions/${reverted_by.action_id}`}>
            <code>{reverted_by.action_id}</code>
          </Link>{' '}
          <State state={reverted_by.phase} />
        </p>
      )}
      {related.length === 0 && !reverts && !reverted_by && (
        <p className="muted">{execution ? 'No other action, workflow or dry run.' : ''}</p>
      )}
      {related.length > 0 && (
        <ul className="related">
          {related.map((r) => (
            <li key={`${r.relation} ${r.execution_id}`} className="row">
              <span className="muted">{relations[r.relation] ?? r.relation}</span>
              {r.relation === 'dry_run' ? (
                <code>{r.execution_id}</code>
              ) : (
                <Link href={`/actions/${r.execution_id}`}>
                  <Shown text={r.tool} />
                </Link>
              )}
              {r.external_id && (
                <span className="muted">
                  <Shown text={r.external_id} />
                </span>
              )}
              <Time at={r.proposed_at} as="both" />
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}
