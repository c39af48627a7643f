// What a person has to find out: an action of unknown outcome, or a step that could not be reverted.
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'wouter'
import { type Answer, give, ofReversal, ofUnknown } from '../../lib/answers'
import { get, type Problem, type Schemas } from '../../lib/client'
import { useCommands } from '../../lib/keys'
import { useMay } from '../../lib/me'
import { Button, Field, Shown, State, Time, toast } from '../../ui'
import { Refusal, Underway } from './Bar'
import type { Action } from './items'
import type { Looking } from './looking'
import { remember, useMemory } from './memory'
import { whyNotOf } from './reasons'
import { nameOf, send, useQueue } from './sending'

interface Known {
  dead_letter: Schemas['DeadLetter']
  attempts: Schemas['Attempt'][]
}

// Settle offers the answers, each with how a person knows.
export function Settle(looking: Looking) {
  const { id, item, onDecided } = looking
  const workflow = item?.kind === 'compensation' ? item.workflow_id : undefined
  const answers = workflow ? ofReversal : ofUnknown
  const { note, outcome, sent, refused } = useMemory(id)
  const may = useMay()
  const queue = useQueue()
  const [chosen, setChosen] = useState(0)
  const whyNot =
    may(answers[0]!.operation) ??
    queue ??
    whyNotOf(item) ??
    (note.trim() === '' ? 'Enter how you found out.' : undefined)
  const answer = (one: Answer) => {
    send({
      id,
      name: nameOf(looking),
      doing: 'answering',
      not: 'not recorded',
      send: () =>
        workflow ? give(one, workflow, note.trim()).then(() => undefined) : give<Action>(one, id, note.trim()),
      done: () => {
        toast({ text: one.done })
        return { words: one.label, state: one.state }
      },
    })
    onDecided()
  }
  useCommands([{ id: 'send', whyNot, run: () => answer(answers[chosen]!) }])
  if (sent) return <Underway sent={sent} />
  if (outcome)
    return (
      <footer className="bar row">
        <State state={outcome.state} word={outcome.words} />
      </footer>
    )
  return (
    <footer className="bar" role="group" aria-label="Outcome">
      {refused && <Refusal of={refused} />}
      {workflow ? (
        <p>
          A later step failed, and this one could not be reverted.{' '}
          <Link href={`/workflows/${workflow}`}>See the workflow</Link>
        </p>
      ) : (
        <WhatIsKnown id={id} />
      )}
      <Field label="How you know" hint="Required, for the audit log.">
        {(wiring) => (
          <textarea
            {...wiring}
            rows={2}
            maxLength={500}
            value={note}
            onChange={(e) => remember(id, { note: e.target.value })}
          />
        )}
      </Field>
      <div className="row" onFocus={(e) => setChosen(Number((e.target as HTMLElement).dataset.answer ?? chosen))}>
        {answers.map((one, i) => (
          <Button
            key={one.label}
            data-answer={i}
            kind={i === 0 ? 'primary' : 'plain'}
            title={one.text}
            whyNot={whyNot}
            onClick={() => answer(one)}
          >
            {one.label}
          </Button>
        ))}
        {whyNot && <span className="faint small">{whyNot}</span>}
      </div>
    </footer>
  )
}

function WhatIsKnown({ id }: { id: string }) {
  const known = useQuery<Known, Problem>({
    queryKey: ['dead-letter', id],
    queryFn: ({ signal }) => get<Known>(`/api/v1/dead-letters/${encodeURIComponent(id)}`, {}, signal),
  })
  const letter = known.data?.dead_letter
  const last = known.data?.attempts.at(-1)
  if (!letter) return known.error ? <p className="faint">The findings were not loaded.</p> : null
  const reads = letter.reconciliation
  return (
    <section aria-label="Findings">
      <h3>Findings</h3>
      <p>
        It was sent, and nobody knows whether it happened. Lost <Time at={letter.at} as="both" />
        {letter.message && (
          <>
            : <Shown text={letter.message} />
          </>
        )}
      </p>
      {last && (
        <p className="muted">
          Last attempt, number {last.attempt}:{' '}
          {last.code && (
            <>
              <code>{last.code}</code>{' '}
            </>
          )}
          <Shown text={last.message ?? ''} />
          {last.provider_id && (
            <>
              {' '}
              · provider’s id <Shown text={last.provider_id} />
            </>
          )}
        </p>
      )}
      <p className="muted">
        {reads ? (
          <>
            Verifying reads: {reads.attempts}
            {reads.last_result && (
              <>
                , last result: <Shown text={reads.last_result} />
              </>
            )}
            {reads.next_at && (
              <>
                ; next <Time at={reads.next_at} />
              </>
            )}
            .
          </>
        ) : (
          'No read verifies this tool, so only a person can find out.'
        )}
      </p>
    </section>
  )
}
