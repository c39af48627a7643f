// What a person has to find out: an action of unknown outcome, or a step that could not be taken back.
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'wouter'
import { get, type Problem, type Schemas } from '../../lib/client'
import { useCommands } from '../../lib/keys'
import { useMay } from '../../lib/me'
import { Button, Field, Shown, State, Time, toast } from '../../ui'
import { useDeciding } from './Bar'
import { resolve, resolveWorkflow } from './decide'
import type { Looking } from './Detail'
import type { Action } from './items'
import { remember, useMemory } from './memory'
import { whyNotOf } from './reasons'

interface Known {
  dead_letter: Schemas['DeadLetter']
  attempts: Schemas['Attempt'][]
}

interface Answer {
  words: string
  done: string
  send: (note: string) => Promise<Action>
}

export function Settle(looking: Looking) {
  const { id, action, item } = looking
  const workflow = item?.kind === 'compensation' ? item.workflow_id : undefined
  const again = async (sent: Promise<unknown>) => {
    await sent
    return action
  }
  const answers: Answer[] = workflow
    ? [
        { words: 'I took it back by hand', done: 'Noted. What was done before is taken back now.', send: (note) => again(resolveWorkflow(workflow, false, note)) },
        { words: 'Leave everything as it is', done: 'The workflow ended as it stands.', send: (note) => again(resolveWorkflow(workflow, true, note)) },
      ]
    : [
        { words: 'It happened', done: 'Noted: it happened.', send: (note) => resolve(id, true, false, note) },
        { words: 'It did not: run again', done: 'It runs again, under the same key.', send: (note) => resolve(id, false, false, note) },
        { words: 'It did not: give up', done: 'Noted: it did not happen, and is not tried again.', send: (note) => resolve(id, false, true, note) },
      ]
  return <Answers looking={looking} answers={answers} unknown={!workflow} operation={workflow ? 'resolveWorkflow' : 'resolveDeadLetter'} />
}

function Answers({ looking, answers, unknown, operation }: { looking: Looking; answers: Answer[]; unknown: boolean; operation: 'resolveWorkflow' | 'resolveDeadLetter' }) {
  const { id, onDecided } = looking
  const { note, outcome } = useMemory(id)
  const may = useMay()
  const { busy, run } = useDeciding(looking)
  const [chosen, setChosen] = useState(0)
  const whyNot = may(operation) ?? whyNotOf(looking.item) ?? (note.trim() === '' ? 'Write how you know it.' : undefined)
  const give = (answer: Answer) => void run(() => answer.send(note.trim()), () => {
    remember(id, { note: '', outcome: { words: answer.words, state: answer.words === 'It happened' ? 'completed' : 'approved' } })
    toast({ text: answer.done })
    onDecided()
  })
  useCommands([{ id: 'send', whyNot, run: () => give(answers[chosen]!) }])
  if (outcome) return <footer className="bar row"><State state={outcome.state} word={outcome.words} /></footer>
  return (
    <footer className="bar" aria-label="What became of it">
      {unknown ? <WhatIsKnown id={id} /> : <p>A later step failed, and this one could not be taken back. <Link href={`/workflows/${looking.item?.workflow_id}`}>See the workflow</Link></p>}
      <Field label="How you know" hint="Required; it stays on record.">
        {(wiring) => <textarea {...wiring} rows={2} maxLength={500} value={note} onChange={(e) => remember(id, { note: e.target.value })} />}
      </Field>
      <div className="row" onFocus={(e) => setChosen(Number((e.target as HTMLElement).dataset.answer ?? chosen))}>
        {answers.map((answer, i) => (
          <Button key={answer.words} data-answer={i} kind={i === 0 ? 'primary' : 'plain'} whyNot={whyNot} busy={busy} onClick={() => give(answer)}>{answer.words}</Button>
        ))}
        {whyNot && <span className="faint small">{whyNot}</span>}
      </div>
    </footer>
  )
}

function WhatIsKnown({ id }: { id: string }) {
  const known = useQuery<Known, Problem>({ queryKey: ['dead-letter', id], queryFn: ({ signal }) => get<Known>(`/api/v1/dead-letters/${encodeURIComponent(id)}`, {}, signal) })
  const letter = known.data?.dead_letter
  const last = known.data?.attempts.at(-1)
  if (!letter) return known.error ? <p className="faint">What is known could not be read.</p> : null
  const reads = letter.reconciliation
  return (
    <section aria-label="What is known">
      <h3>What is known</h3>
      <p>It was sent, and nobody knows whether it happened. Lost <Time at={letter.at} as="both" />{letter.message && <>: <Shown text={letter.message} /></>}</p>
      {last && <p className="muted">Last attempt, number {last.attempt}: {last.code && <><code>{last.code}</code> </>}<Shown text={last.message ?? ''} />{last.provider_id && <> · provider’s id <Shown text={last.provider_id} /></>}</p>}
      <p className="muted">
        {reads ? <>Verifying reads: {reads.attempts}{reads.last_result && <>, the last said: <Shown text={reads.last_result} /></>}{reads.next_at && <>; next <Time at={reads.next_at} /></>}.</> : 'No read verifies this tool, so only a person can find out.'}
      </p>
    </section>
  )
}
