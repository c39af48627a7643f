// One dead letter: what was sent, what every attempt came to, and the answers that a person can give.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Link, useLocation } from 'wouter'
import { get, post, type Problem, type Schemas } from '../../lib/client'
import { useCommands } from '../../lib/keys'
import { useMay, type OperationID } from '../../lib/me'
import { duration } from '../../lib/time'
import { shown } from '../../lib/text'
import { Button, Dialog, Empty, Field, JsonText, Loading, ProblemNote, Risk, Shown, State, Time, toast } from '../../ui'
import { stateOf } from './groups'

interface Read {
  dead_letter: Schemas['DeadLetter']
  action: Schemas['Action']
  attempts: Schemas['Attempt'][]
}

export function Letter({ id }: { id: string }) {
  const [, go] = useLocation()
  const letter = useQuery<Read, Problem>({ queryKey: ['dead-letter', id], queryFn: ({ signal }) => get<Read>(`/api/v1/dead-letters/${encodeURIComponent(id)}`, {}, signal) })
  useCommands([{ id: 'back', run: () => (history.length > 1 ? history.back() : go('/dead-letters')) }])
  const { data, error } = letter
  if (!data && error && (error.status === 404 || error.status === 400)) {
    return (
      <Empty whole title="There is no such dead letter">
        <p>It may have been replayed, given up or resolved since. Its action has the whole of it.</p>
        <p className="row"><Link href={`/actions/${encodeURIComponent(id)}`}>See the action</Link> <Link href="/dead-letters">All dead letters</Link></p>
      </Empty>
    )
  }
  if (!data) return error ? <div className="page"><ProblemNote error={error} what="The dead letter was not loaded" onRetry={() => void letter.refetch()} /></div> : <Loading what="the dead letter" />
  return <Loaded read={data} error={error} />
}

function Loaded({ read: { dead_letter: letter, action, attempts }, error }: { read: Read; error: Problem | null }) {
  const [state, word] = stateOf[letter.reason] ?? [letter.reason, letter.reason]
  return (
    <div className="page">
      <header className="stack">
        <p className="small"><Link href="/dead-letters">Dead letters</Link></p>
        <div className="page-head">
          <h1 className="title mono"><Shown text={letter.tool} /></h1>
          <State state={state} word={word} />
          <Risk risk={action.envelope.risk} />
          <span className="muted">since <Time at={letter.at} as="both" /></span>
          <Link href={`/actions/${letter.action_id}`}>its action</Link>
        </div>
        {letter.code && <p><code>{shown(letter.code)}</code> <Shown text={letter.message ?? ''} /></p>}
        <Answers id={letter.action_id} unknown={letter.reason === 'unknown'} />
        {error && <ProblemNote error={error} what="What you see is from before" />}
      </header>
      {letter.reconciliation && (
        <section className="panel stack" aria-labelledby="reconciled">
          <h2 id="reconciled">What reads of the source said</h2>
          <p>{Number(letter.reconciliation.attempts) === 0 ? 'Nobody asked the source yet.' : `Asked ${letter.reconciliation.attempts} times.`} {letter.reconciliation.last_result && <>Last: <Shown text={letter.reconciliation.last_result} />.</>} {letter.reconciliation.next_at && <>Asked again <Time at={letter.reconciliation.next_at} as="both" />.</>}</p>
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
                {a.started_at && <span className="muted">{duration(Math.max(0, Date.parse(a.finished_at) - Date.parse(a.started_at)))}</span>}
              </p>
              {a.result !== undefined && <details className="open"><summary>Answer</summary><JsonText value={a.result} label={`Answer of attempt ${a.attempt}`} /></details>}
            </li>
          ))}
        </ol>
      </section>
    </div>
  )
}

type Answer = 'happened' | 'again' | 'give_up' | 'replay' | 'discard'

const offers: Record<Answer, { label: string; operation: OperationID; text: string; must: boolean; to: string; body: (id: string, note: string) => unknown }> = {
  happened: { label: 'It happened', operation: 'resolveDeadLetter', text: 'The action counts as sent, and is not sent again.', must: true, to: '/resolve', body: (_, note) => ({ happened: true, note }) },
  again: { label: 'It did not: run again', operation: 'resolveDeadLetter', text: 'The action runs again under its old idempotency key.', must: true, to: '/resolve', body: (_, note) => ({ happened: false, note }) },
  give_up: { label: 'It did not: give up', operation: 'resolveDeadLetter', text: 'The action counts as failed, and is not sent again.', must: true, to: '/resolve', body: (_, note) => ({ happened: false, give_up: true, note }) },
  replay: { label: 'Replay', operation: 'replayDeadLetters', text: 'The action goes on the schedule again, under its old idempotency key and with as many attempts as at first.', must: false, to: 'replay', body: (id, note) => ({ action_ids: [id], ...(note ? { note } : {}) }) },
  discard: { label: 'Give up', operation: 'discardDeadLetters', text: 'The action leaves the dead letters and cannot be replayed any more. Its attempts and events are kept.', must: true, to: 'discard', body: (id, reason) => ({ action_ids: [id], reason }) },
}

function Answers({ id, unknown }: { id: string; unknown: boolean }) {
  const [open, setOpen] = useState<Answer>()
  const may = useMay()
  const all: Answer[] = unknown ? ['happened', 'again', 'give_up'] : ['replay', 'discard']
  return (
    <div className="row">
      {all.map((answer) => <Button key={answer} whyNot={may(offers[answer].operation)} onClick={() => setOpen(answer)}>{offers[answer].label}…</Button>)}
      {open && <Ask id={id} answer={open} onClose={() => setOpen(undefined)} />}
    </div>
  )
}

function Ask({ id, answer, onClose }: { id: string; answer: Answer; onClose: () => void }) {
  const { label, text, must, to, body } = offers[answer]
  const [note, setNote] = useState('')
  const client = useQueryClient()
  const [, go] = useLocation()
  const send = useMutation<unknown, Problem>({
    mutationFn: () => post(to.startsWith('/') ? `/api/v1/dead-letters/${id}${to}` : `/api/v1/dead-letters/${to}`, body(id, note.trim())),
    onSuccess: () => {
      for (const word of ['dead-letters', 'dead-letter-summary', 'actions', 'inbox', 'inbox-counts']) void client.invalidateQueries({ queryKey: [word] })
      for (const word of ['action', 'history']) void client.invalidateQueries({ queryKey: [word, id] })
      toast({ text: `${label}: recorded.` })
      onClose()
      go(`/actions/${id}`)
    },
  })
  const whyNot = must && note.trim() === '' ? 'A note is needed, for the record.' : undefined
  const submit = () => !whyNot && !send.isPending && send.mutate()
  return (
    <Dialog
      title={label} onClose={onClose}
      actions={<><Button onClick={onClose}>Not now</Button><Button kind="primary" command="send" whyNot={whyNot} busy={send.isPending} onClick={submit}>{label}</Button></>}
    >
      <div className="stack">
        <p>{text}</p>
        <Note value={note} must={must} onChange={setNote} onSend={submit} />
        {send.error && <ProblemNote error={send.error} />}
      </div>
    </Dialog>
  )
}

function Note({ value, must, onChange, onSend }: { value: string; must: boolean; onChange: (text: string) => void; onSend: () => void }) {
  useCommands([{ id: 'send', run: onSend }])
  return (
    <Field label="Note" hint={must ? 'How you know, for the record.' : 'Why, for the record. It may be left out.'}>
      {(wiring) => <textarea {...wiring} value={value} maxLength={500} required={must} onChange={(e) => onChange(e.target.value)} />}
    </Field>
  )
}
