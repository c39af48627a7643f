// One thing that waits: what will be sent, what people changed, why a person is asked, and what happens if one
// approves.
import { useQuery } from '@tanstack/react-query'
import { type ReactNode, type RefObject, useEffect, useMemo, useRef } from 'react'
import { Link } from 'wouter'
import { ComplaintSummary } from '../../form/editing'
import { useForm } from '../../form/load'
import { Marks, useMarks } from '../../form/marks'
import { type Field, fieldsOf } from '../../form/plan'
import { Changes, foldedIn } from '../../form/text'
import { useUnseen } from '../../form/unseen'
import { Values, valuesOf } from '../../form/Values'
import type { Problem, Schemas } from '../../lib/client'
import { copy } from '../../lib/copy'
import { type Json, same, stringify } from '../../lib/json'
import { useScrollsBack, useStateOf } from '../../lib/of'
import { afterPaint, usePainted } from '../../lib/painted'
import { get as at, diff } from '../../lib/pointer'
import { queries } from '../../lib/query'
import { shown } from '../../lib/text'
import { Button, Chip, JsonText, Loading, ProblemNote, Risk, Shown, State, Tabs, Time } from '../../ui'
import { Acknowledge } from './Acknowledge'
import { Bar } from './Bar'
import { forecastQuery } from './decide'
import { useBegun, useHeld } from './hand'
import { type Action, actionQuery, decided, type Item, toolQuery } from './items'
import { Lookalikes } from './Lookalikes'
import type { Looking } from './looking'
import { rebased, remember, useMemory } from './memory'
import { Person } from './Person'
import { reasonsOf } from './reasons'
import { Settle } from './Settle'

interface Props {
  id: string
  item: Item | undefined
  onDecided: () => void
  // marked counts what is marked in the list: the keys of a decision then mean these.
  marked?: number
  head?: ReactNode
}

// Detail shows an action: at once where it was read ahead, and reads it again behind that. Its elements are
// reused for the next action, which often differs little. Its state belongs to one action; a part with state has a key.
export function Detail({ id, item, onDecided, marked = 0, head }: Props) {
  const painted = usePainted(id)
  const query = useQuery<Action, Problem>({
    ...actionQuery(id),
    enabled: painted || queries.getQueryData(['action', id]) === undefined,
  })
  const of = query.data?.envelope.tool
  const tool = useTool(item?.tool ?? (of && `${of.source}:${of.name}`))
  // An item that was not read ahead is drawn once all of it is loaded, so that nothing moves.
  const [cold, setCold] = useStateOf(id, () => query.data === undefined || tool.isPending)
  const forecast = useQuery<Schemas['Forecast'], Problem>({
    ...forecastQuery(id),
    enabled: cold && (item ? decided(item.kind) : query.data?.phase === 'pending'),
  })
  const comes = [tool, forecast].some((one) => one.isLoading && one.failureCount === 0)
  // Once drawn it stays: parts that may not be read, or failed, are asked for again when they are drawn.
  if (cold && query.data && !comes) setCold(false)
  if (query.data && !(cold && comes))
    return (
      <Loaded
        id={id}
        action={query.data}
        item={item}
        onDecided={onDecided}
        marked={marked}
        head={head}
        error={query.error}
      />
    )
  return (
    <div className="detail-body">
      {head}
      {query.error ? (
        <ProblemNote error={query.error} onRetry={() => void query.refetch()} />
      ) : (
        <Loading what="the action" />
      )}
    </div>
  )
}

function useTool(name: string | undefined) {
  return useQuery<Schemas['Tool'], Problem>({ ...toolQuery(name), enabled: name !== undefined })
}

function Loaded({
  id,
  action,
  item,
  onDecided,
  marked = 0,
  head,
  error,
}: Props & { action: Action; error: Problem | null }) {
  const name = `${action.envelope.tool.source}:${action.envelope.tool.name}`
  const tool = useTool(name)
  const memory = useMemory(id)
  useHeld()
  const [opened, setOpened] = useStateOf<ReadonlySet<string>>(id, () => new Set())
  const args = action.envelope.args as Json
  const etag = action.decision?.etag ?? ''
  const schema = tool.data?.input_schema as Json | undefined
  useEffect(() => {
    if (memory.seen || memory.sent) return
    const seen = { etag, args, at: Date.now() }
    return afterPaint(() => remember(id, { seen }))
  }, [id, memory.seen, memory.sent, etag, args])
  const { draft, refused } = memory
  const form = useForm(draft !== undefined)
  const advise = useMemo(() => form?.advisor(schema), [form, schema])
  const complaints = useMemo(
    () => [...(draft && advise ? advise(draft.args) : []), ...(refused?.complaints ?? [])],
    [advise, draft, refused],
  )
  const folds = { opened, open: (...pointers: string[]) => setOpened(new Set([...opened, ...pointers])) }
  const [how, setHow] = useStateOf<How>(id, () => 'form')
  const region = useRef<HTMLElement>(null)
  const sends = draft?.args ?? args
  const fields = useMemo(() => fieldsOf(schema, sends), [schema, sends])
  const values = useMemo(() => (how === 'json' ? [''] : valuesOf(fields)), [how, fields])
  const unseen = useUnseen(region, values)
  // A value that this person changes is another one than the server marked.
  const marks = useMarks(
    useMemo(
      () => action.lookalikes?.filter(({ pointer }) => sends === args || same(at(args, pointer), at(sends, pointer))),
      [action.lookalikes, args, sends],
    ),
  )
  const unread = useMemo(
    () => (how === 'json' ? [] : foldedIn(fields).filter((pointer) => !opened.has(pointer))),
    [how, fields, opened],
  )
  const pending = action.phase === 'pending'
  const looking: Looking = {
    id,
    action,
    item,
    args,
    etag,
    schema,
    tool: tool.data,
    folds,
    unread,
    unseen,
    complaints,
    onDecided,
    stale: pending && memory.seen !== undefined && memory.seen.etag !== etag,
  }
  return (
    <article className="detail" onScrollCapture={useScrollsBack(id)} aria-label={`${shown(tool.data?.title || name)}`}>
      <div className="detail-body">
        {head}
        <Title {...looking} name={name} />
        {error && (
          <p className="banner tone-calm">This is what was read before; it could not be read again just now.</p>
        )}
        {looking.stale && <Stale key={id} {...looking} />}
        {refused && refused.complaints.length > 0 && (
          <ComplaintSummary key={id} title="The tool does not take this" complaints={refused.complaints} />
        )}
        {pending && (
          <div className="brief">
            <Reasons {...looking} />
            <ForecastNote id={id} />
          </div>
        )}
        <Marks value={marks}>
          <Arguments {...looking} fields={fields} toolError={tool.error} how={how} onHow={setHow} region={region} />
        </Marks>
        <Edits {...looking} />
        <Facts {...looking} />
      </div>
      {action.phase === 'unknown' || item?.kind === 'compensation' ? (
        <Settle key={id} {...looking} />
      ) : marked > 0 ? (
        <footer className="bar">
          <p className="muted">
            {marked} are marked in the list, and what you decide is about these. Unmark them to decide about this one.
          </p>
        </footer>
      ) : item?.kind === 'notify' ? (
        <Acknowledge key={id} {...looking} />
      ) : (
        <Bar key={id} {...looking} />
      )}
    </article>
  )
}

function Title({ id, action, item, tool, name }: Looking & { name: string }) {
  const needed = action.decision?.approvals_needed ?? 0
  const given = action.decision?.approvals_given ?? 0
  return (
    <header className="detail-title">
      <p className="faint small crumbs">
        <bdi>{shown(name)}</bdi>
        {action.envelope.session_id && (
          <>
            {' '}
            / <bdi>{shown(action.envelope.session_id)}</bdi>
          </>
        )}{' '}
        / <Link href={`/actions/${action.envelope.action_id}`}>{action.envelope.action_id}</Link>
      </p>
      <h1 className="unseen only-narrow">Inbox</h1>
      <h2 className="title">
        <Shown text={tool?.title || name} />
      </h2>
      {action.headline && (
        <p className="headline">
          <Shown text={action.headline} />
        </p>
      )}
      <Lookalikes key={id} of={action.lookalikes} />
      {tool?.description && (
        <p className="muted description">
          <Shown text={firstSentence(tool.description)} />
        </p>
      )}
      <p className="row">
        <State
          state={item?.kind === 'compensation' ? 'failed' : action.phase}
          word={item?.kind === 'compensation' ? 'could not be reverted' : undefined}
        />
        <Risk risk={action.envelope.risk} />
        {item && !item.reversible && <Chip icon="undo">cannot be reverted</Chip>}
        {action.phase === 'pending' && needed > 1 && (
          <span>
            needs {needed} people
            {given > 0 && (
              <>
                , {given} agreed
                {item?.approved_by?.map((by) => (
                  <span key={by}>
                    {' · '}
                    <Person actor={by} />
                  </span>
                ))}
              </>
            )}
            ; {needed - given} more must agree
          </span>
        )}
      </p>
      <p className="muted">
        {item?.proposed_by && (
          <>
            proposed by <Person actor={item.proposed_by} />{' '}
          </>
        )}
        <Time at={action.envelope.timestamps.created_at} />
        {action.phase === 'pending' && action.decision?.expires_at && (
          <>
            {' '}
            · ends <Time at={action.decision.expires_at} as="both" />
          </>
        )}
      </p>
      <MailLine of={action.mail} />
      {item?.drift && (
        <p className="banner tone-drift">
          <strong>The tool changed: </strong>
          <Shown text={item.drift} />
        </p>
      )}
      {item?.note && (
        <p className="banner tone-waits">
          <strong>It came back: </strong>
          <Shown text={item.note} />
        </p>
      )}
      {item?.message && (
        <p className="banner tone-unknown">
          <Shown text={item.message} />
        </p>
      )}
    </header>
  )
}

// firstSentence returns the first sentence of a tool's description, at most 200 characters.
function firstSentence(text: string): string {
  const sentence = text.trim().split(/(?<=[.!?])\s|\n/, 1)[0]!
  return sentence.length > 200 ? `${sentence.slice(0, 200)}…` : sentence
}

// MailLine shows the message that an action is about. Its sender chose every word of it.
function MailLine({ of }: { of: Action['mail'] }) {
  if (!of) return null
  return (
    <p>
      <span className="faint">Mail: </span>
      {of.sender_name && <Shown text={of.sender_name} />} {'<'}
      <Shown text={of.sender} />
      {'>'}: <Shown text={of.subject || 'no subject'} />
    </p>
  )
}

function Stale({ id, action, args, etag }: Looking) {
  const { seen, draft } = useMemory(id)
  const by = action.decision?.edited?.by
  const changes = diff(seen?.args, args)
  const look = () =>
    remember(id, {
      seen: { etag, args, at: Date.now() },
      draft: draft && seen ? rebased(draft, seen.args, args) : draft,
    })
  return (
    <div className="banner tone-person" role="alert">
      <p>
        <strong>
          Changed since you loaded it
          {by && changes.length > 0 && (
            <>
              , by <Person actor={by} />
            </>
          )}
          .
        </strong>{' '}
        {changes.length === 0 &&
          'The arguments are the same; the policy decision or the required approvals have changed.'}
        {draft && ' Your text is kept.'}
      </p>
      {changes.length > 0 && <Changes changes={changes} />}
      <Button onClick={look}>I have reviewed it</Button>
    </div>
  )
}

type How = 'form' | 'json'

interface Shape {
  // fields are of the arguments that are sent, also of a draft.
  fields: Field
  toolError: Problem | null
  how: How
  onHow: (how: How) => void
  // region is where the values are that are sent if somebody approves.
  region: RefObject<HTMLElement | null>
}

function Arguments(looking: Looking & Shape) {
  const { id, action, args, schema, folds, complaints, fields, toolError, how, onHow, region } = looking
  const { draft, mode, sent } = useMemory(id)
  const editing = how === 'form' && mode === 'edit' && draft !== undefined && !sent
  const form = useForm(editing)
  useBegun(id, form !== undefined && editing)
  const title = action.phase === 'pending' || action.phase === 'approved' ? 'What will be sent' : 'What was sent'
  return (
    <section aria-label={title}>
      <div className="section-head">
        <h3>{title}</h3>
        <Tabs
          label="How it is shown"
          tabs={[
            { key: 'form', label: 'Form' },
            { key: 'json', label: 'JSON' },
          ]}
          chosen={how}
          onChoose={onHow}
        />
        <Button kind="quiet" icon="copy" onClick={() => void copy(stringify(args, 2), 'Arguments copied')}>
          Copy
        </Button>
      </div>
      {toolError && (
        <p className="faint small">
          The schema of the tool could not be read ({shown(toolError.message)}), so the arguments are JSON.
        </p>
      )}
      {editing && form && (
        <form.Form
          key={id}
          schema={schema}
          draft={draft}
          onDraft={(next) => remember(id, { draft: next })}
          complaints={complaints}
        />
      )}
      {editing && <h3>As it will be sent</h3>}
      <section ref={region} aria-label={editing ? 'As it will be sent' : undefined}>
        {how === 'json' ? <JsonText value={draft?.args ?? args} label={title} /> : <Values of={fields} folds={folds} />}
      </section>
      {draft && <Mine args={args} draft={draft.args} />}
    </section>
  )
}

function Mine({ args, draft }: { args: Json; draft: Json }) {
  const changes = diff(args, draft)
  return (
    <section className="mine" aria-label="What you change">
      <h3>What you change</h3>
      {changes.length ? <Changes changes={changes} /> : <p className="faint">Nothing yet.</p>}
    </section>
  )
}

function Edits({ action, args }: Looking) {
  const edited = action.decision?.edited
  if (!edited) return null
  return (
    <section aria-label="Changed by people">
      <h3>
        Changed by <Person actor={edited.by} />, from what was proposed
      </h3>
      <Changes changes={diff(edited.proposed_args as Json, args)} />
      <ul className="faint small">
        {edited.edits.map((edit, i) => (
          <li key={i}>
            <Person actor={edit.by} />, <Time at={edit.at} as="both" />:{' '}
            {edit.pointers.map((pointer) => shown(pointer || '(everything)')).join(', ')}
            {edit.note && (
              <>
                {' '}
                · “<Shown text={edit.note} />”
              </>
            )}
          </li>
        ))}
      </ul>
    </section>
  )
}

function Reasons({ action, item }: Looking) {
  const reasons = reasonsOf(action.policy.trace)
  const needed = action.decision?.approvals_needed ?? 1
  return (
    <section aria-label="Why a person is asked">
      <h3>Why a person is asked</h3>
      <ul className="reasons">
        {reasons.map((reason, i) => (
          <li key={i} className={reason.asks ? 'asks' : undefined}>
            {shown(reason.who)} <strong>{shown(reason.says)}</strong>
            {reason.detail && (
              <span className="muted">
                {' · '}
                <Shown text={reason.detail} />
              </span>
            )}
          </li>
        ))}
        {needed > 1 && (
          <li className="asks">
            a review rule <strong>asks for {needed} people</strong>
          </li>
        )}
        {!reasons.length && <li>{shown(item?.policy ?? action.policy.source)}</li>}
      </ul>
    </section>
  )
}

function ForecastNote({ id }: { id: string }) {
  const forecast = useQuery<Schemas['Forecast'], Problem>({ ...forecastQuery(id), enabled: usePainted(id) }).data
  if (!forecast) return null
  return (
    <section aria-label="If you approve now">
      <h3>If you approve now</h3>
      {forecast.problem ? (
        <p className="banner tone-bad">
          <Shown text={forecast.problem.detail || forecast.problem.title} />
        </p>
      ) : !forecast.allowed ? (
        <p>It would not be sent.</p>
      ) : forecast.goes_out_at === null ? (
        <p>The send time is unknown.</p>
      ) : forecast.approvals_left ? (
        <p>
          {forecast.approvals_left} more must agree. It goes out after that
          {forecast.gates.length > 0 && (
            <>
              , <Time at={forecast.goes_out_at} as="both" /> at the earliest
            </>
          )}
          .
        </p>
      ) : (
        <p>It goes out {forecast.gates.length ? <Time at={forecast.goes_out_at} as="both" /> : 'at once'}.</p>
      )}
      {forecast.gates.length > 0 && (
        <ul>
          {forecast.gates.map((gate, i) => (
            <li key={i}>
              <Shown text={gate.message} />
              {gate.until && (
                <>
                  , until <Time at={gate.until} as="clock" />
                </>
              )}
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

function Facts({ action, item }: Looking) {
  const { envelope } = action
  const facts: [string, ReactNode][] = [
    ['effect', action.effect],
    ['automation', envelope.automation_id && shown(envelope.automation_id)],
    ['for', envelope.employee_id],
    ['bucket', envelope.constraints.rate_bucket && shown(envelope.constraints.rate_bucket)],
    ['not before', envelope.constraints.not_before && <Time at={envelope.constraints.not_before} as="both" />],
    [
      'must run before',
      envelope.constraints.must_run_before && <Time at={envelope.constraints.must_run_before} as="both" />,
    ],
    ['reverts', action.reverts && <Link href={`/actions/${action.reverts}`}>{action.reverts}</Link>],
    ['workflow', item?.workflow_id && <Link href={`/workflows/${item.workflow_id}`}>{item.workflow_id}</Link>],
  ]
  return (
    <dl className="inbox-facts small">
      {facts
        .filter(([, value]) => value)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  )
}
