// One dead letter: what was sent, what every attempt came to, and the answers that a person can give.
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link, useLocation } from 'wouter'
import { give, ofUnknown } from '../../lib/answers'
import { get, type Problem, post, type Schemas } from '../../lib/client'
import { useCommands } from '../../lib/keys'
import { type OperationID, useMay } from '../../lib/me'
import { queries } from '../../lib/query'
import { shown } from '../../lib/text'
import { duration } from '../../lib/time'
import { Ask, Button, Empty, JsonText, Loading, ProblemNote, Risk, Shown, State, Time, toast } from '../../ui'
import { stateOf } from './groups'

interface Read {
  dead_letter: Schemas['DeadLetter']
  action: Schemas['Action']
  attempts: Schemas['Attempt'][]
}

export function Letter({ id }: { id: string }) {
  const [, go] = useLocation()
  const letter = useQuery<Read, Problem>({
    queryKey: ['dead-letter', id],
    queryFn: ({ signal }) => get<Read>(`/api/v1/dead-letters/${encodeURIComponent(id)}`, {}, signal),
  })
  useCommands([{ id: 'back', run: () => (history.length > 1 ? history.back() : go('/dead-letters')) }])
  const { data, error } = letter
  if (!data && error && (error.status === 404 || error.status === 400)) {
    return (
      <Empty whole title="Dead letter not found">
        <p>It may have been replayed, given up or resolved since. See its action for the history.</p>
        <p className="row">
          <Link href={`/actions/${encodeURIComponent(id)}`}>See the action</Link>{' '}
          <Link href="/dead-letters">All dead letters</Link>
        </p>
      </Empty>
    )
  }
  if (!data)
    return error ? (
      <div className="page">
        <ProblemNote whole error={error} what="The dead letter was not loaded" onRetry={() => void letter.refetch()} />
      </div>
    ) : (
      <Loading what="the dead letter" />
    )
  return <Loaded read={data} error={error} />
}

function Loaded({ read: { dead_letter: letter, action, attempts }, error }: { read: Read; error: Problem | null }) {
  const [state, word] = stateOf[letter.reason] ?? [letter.reason, letter.reason]
  return (
    <div className="page">
      <header className="stack">
        <p className="small">
          <Link href="/dead-letters">Dead letters</Link>
        </p>
        <div className="page-head">
          <h1 className="title mono">
            <Shown text={letter.tool} />
          </h1>
          <State state={state} word={word} />
          <Risk risk={action.envelope.risk} />
          <span className="muted">
            since <Time at={letter.at} as="both" />
          </span>
          <Link href={`/actions/${letter.action_id}`}>its action</Link>
        </div>
        {letter.code && (
          <p>
            <code>{shown(letter.code)}</code> <Shown text={letter.message ?? ''} />
          </p>
        )}
        <Answers id={letter.action_id} unknown={letter.reason === 'unknown'} />
        {error && <ProblemNote error={error} what="Not updated: showing earlier data" />}
      </header>
      {letter.reconciliation && (
        <section className="panel stack" aria-labelledby="reconciled">
          <h2 id="reconciled">Results of verifying reads</h2>
          <p>
            {Number(letter.reconciliation.attempts) === 0
              ? 'No verifying read has run yet.'
              : `Asked ${letter.reconciliation.attempts} times.`}{' '}
            {letter.reconciliation.last_result && (
              <>
                Last: <Shown text={letter.reconciliation.last_result} />.
              </>
            )}{' '}
            {letter.reconciliation.next_at && (
              <>
                Next read: <Time at={letter.reconciliation.next_at} as="both" />.
              </>
            )}
          </p>
        </section>
      )}
      <section className="panel stack" aria-labelledby="sent">
        <h2 id="sent">What was sent</h2>
        <JsonText value={action.envelope.args} label="Arguments" />
      </section>
      <section className="panel stack" aria-labelledby="attempts">
        <h2 id="attempts">Attempts</h2>
        <ol className="attempts">
          {attempts.map((a, i) => (
            <li key={i} className="stack">
              <p className="row">
                <span>attempt {String(a.attempt)}</span> <Time at={a.finished_at} as="clock" />
                {a.code && <code>{shown(a.code)}</code>} <Shown text={a.message ?? ''} />
                {a.started_at && (
                  <span className="muted">
                    {duration(Math.max(0, Date.parse(a.finished_at) - Date.parse(a.started_at)))}
                  </span>
                )}
              </p>
              {a.result !== undefined && (
                <details className="open">
                  <summary>Answer</summary>
                  <JsonText value={a.result} label={`Answer of attempt ${a.attempt}`} />
                </details>
              )}
            </li>
          ))}
        </ol>
      </section>
    </div>
  )
}

interface Offer {
  label: string
  operation: OperationID
  text: string
  note: 'may' | 'must'
  hint: string
  send: (id: string, note: string) => Promise<unknown>
}

const settled: readonly Offer[] = ofUnknown.map((answer) => ({
  ...answer,
  note: 'must',
  hint: 'How you found out, for the audit log.',
  send: (id, note) => give(answer, id, note),
}))

const failed: readonly Offer[] = [
  {
    label: 'Replay',
    operation: 'replayDeadLetters',
    text: 'The action goes on the schedule again, under its old idempotency key and with all of its attempts again.',
    note: 'may',
    hint: 'Reason, for the audit log.',
    send: (id, note) => post('/api/v1/dead-letters/replay', { action_ids: [id], ...(note ? { note } : {}) }),
  },
  {
    label: 'Give up',
    operation: 'discardDeadLetters',
    text: 'The action leaves the dead letters and cannot be replayed any more. Its attempts and events are kept.',
    note: 'must',
    hint: 'Reason, for the audit log.',
    send: (id, reason) => post('/api/v1/dead-letters/discard', { action_ids: [id], reason }),
  },
]

function Answers({ id, unknown }: { id: string; unknown: boolean }) {
  const [open, setOpen] = useState<Offer>()
  const may = useMay()
  const [, go] = useLocation()
  const done = (label: string) => {
    for (const word of ['dead-letters', 'dead-letter-summary', 'actions', 'inbox', 'inbox-counts'])
      void queries.invalidateQueries({ queryKey: [word] })
    for (const word of ['action', 'history']) void queries.invalidateQueries({ queryKey: [word, id] })
    toast({ text: `${label}: recorded.` })
    go(`/actions/${id}`)
  }
  return (
    <div className="row">
      {(unknown ? settled : failed).map((offer) => (
        <Button key={offer.label} whyNot={may(offer.operation)} onClick={() => setOpen(offer)}>
          {offer.label}…
        </Button>
      ))}
      {open && (
        <Ask
          {...open}
          title={open.label}
          send={(note) => open.send(id, note)}
          onDone={() => done(open.label)}
          onClose={() => setOpen(undefined)}
        />
      )}
    </div>
  )
}
