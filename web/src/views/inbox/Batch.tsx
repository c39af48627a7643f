// Decisions about many at once: what differs between them, and what became of each.
import { useMemo, useRef, useState } from 'react'
import { stringify } from '../../lib/json'
import { get } from '../../lib/pointer'
import { useMay } from '../../lib/me'
import { shown } from '../../lib/text'
import { Button, Dialog, Field, ProblemNote, Sending, State } from '../../ui'
import { many, part, type Decided } from './decide'
import type { Item } from './items'
import { argsOf, differences, headline } from './likeness'
import { rememberAll } from './memory'
import { whyNotOf } from './reasons'

interface Props {
  verb: 'approve' | 'deny'
  items: readonly Item[]
  // onClose gets the items that nothing was answered about.
  onClose: (left: readonly Item[]) => void
}

const outcomes = {
  approved: { words: 'approved by you', state: 'approved' },
  voted: { words: 'you agreed', state: 'pending' },
  denied: { words: 'denied by you', state: 'denied' },
} as const

export function Batch({ verb, items, onClose }: Props) {
  const [note, setNote] = useState('')
  const [busy, setBusy] = useState(false)
  const [results, setResults] = useState<readonly Decided[]>()
  const [error, setError] = useState<unknown>()
  const sent = useRef(false)
  const may = useMay()
  const whyNot = may(verb === 'approve' ? 'approveActions' : 'denyActions')
  const send = async () => {
    if (sent.current) return
    sent.current = true
    setBusy(true)
    const { decided, error: failed } = await many(verb, items, note)
    rememberAll(decided.flatMap(({ action_id, result }) => (result === 'refused' ? [] : [[action_id, { outcome: outcomes[result], seen: undefined }] as const])))
    setBusy(false)
    setError(failed)
    // What was answered stays on record, also where a later part failed; nothing of it is sent again.
    if (decided.length > 0 || !failed) setResults(decided)
    else sent.current = false
  }
  const answered = new Set(results?.map((one) => one.action_id))
  const left = items.filter((item) => !answered.has(item.action_id))
  const close = () => onClose(left)
  const word = verb === 'approve' ? 'Approve' : 'Deny'
  return (
    <Dialog
      title={results ? 'What became of each' : `${word} ${items.length}?`} onClose={close}
      actions={results ? <Button kind="primary" onClick={close}>Close</Button> : (
        <><Button kind={verb === 'approve' ? 'primary' : 'danger'} command="send" busy={busy} whyNot={whyNot} onClick={() => void send()}>{word} {items.length}</Button><Button onClick={close}>Cancel</Button></>
      )}
    >
      <Sending run={() => void send()} whyNot={results ? 'It is done.' : whyNot} />
      {Boolean(error) && <ProblemNote error={error} what={results && unanswered(left.length)} />}
      {results ? <Results items={items} results={results} /> : (
        <div className="stack">
          <Overview items={items} />
          <Field label={verb === 'deny' ? 'What the agents should do instead' : 'Note'} hint="The agents read this.">
            {(wiring) => <textarea {...wiring} rows={2} maxLength={500} value={note} onChange={(e) => setNote(e.target.value)} />}
          </Field>
        </div>
      )}
    </Dialog>
  )
}

const unanswered = (left: number) =>
  `${Math.min(left, part)} were not answered${left > part ? `, and the ${left - part} behind them were not sent` : ''}. They stay marked`

function Overview({ items }: { items: readonly Item[] }) {
  const differ = useMemo(() => differences(items), [items])
  const barred = items.filter((item) => whyNotOf(item) !== undefined)
  const grave = items.filter((item) => item.risk === 'high' || !item.reversible)
  const columns = differ.pointers.slice(0, 4)
  return (
    <>
      <p>
        {differ.tools.length === 1 ? <>All call <strong>{shown(differ.tools[0]!)}</strong></> : <>{differ.tools.length} tools</>}
        {differ.pointers.length > 0 ? <>; they differ in {differ.pointers.slice(0, 12).map((pointer, i) => <span key={pointer}>{i > 0 && ', '}<code>{shown(pointer)}</code></span>)}{differ.pointers.length > 12 && ` and ${differ.pointers.length - 12} more places`}</> : items.length > 1 && '; their arguments are the same'}.
        {differ.cut && ' Not all arguments are shown here, so there may be other differences.'}
      </p>
      {grave.length > 0 && <p className="banner tone-person">{grave.length} of them are of high risk or cannot be taken back.</p>}
      {barred.length > 0 && <p className="banner tone-calm">{barred.length} of them you may not decide about; they will be refused.</p>}
      <div className="table-scroll batch-table" tabIndex={0} role="group" aria-label="What differs">
        <table className="table">
          <thead><tr><th scope="col">action</th>{columns.map((pointer) => <th scope="col" key={pointer}><code>{shown(pointer)}</code></th>)}</tr></thead>
          <tbody>
            {items.map((item) => {
              const { args } = argsOf(item)
              return (
                <tr key={item.action_id}>
                  <td><span className="cut">{shown(columns.length ? item.tool : headline(item))}</span></td>
                  {columns.map((pointer) => <td key={pointer}>{shown(short(get(args, pointer)))}</td>)}
                </tr>
              )
            })}
          </tbody>
        </table>
      </div>
    </>
  )
}

function short(value: ReturnType<typeof get>): string {
  if (value === undefined) return 'not sent'
  const text = typeof value === 'string' ? value : stringify(value)
  return text.length > 120 ? `${text.slice(0, 120)}… ${text.length - 120} more characters` : text
}

const states = { approved: 'approved', voted: 'pending', denied: 'denied', refused: 'failed' } as const
const results = { approved: 'approved', voted: 'agreed, more must', denied: 'denied', refused: 'refused' } as const

function Results({ items, results: decided }: { items: readonly Item[]; results: readonly Decided[] }) {
  const counts = (['approved', 'voted', 'denied', 'refused'] as const).map((kind) => [kind, decided.filter((one) => one.result === kind).length] as const).filter(([, n]) => n > 0)
  const ordered = [...decided].sort((a, b) => Number(b.result === 'refused') - Number(a.result === 'refused'))
  return (
    <>
      <p role="status" className="row">{counts.map(([kind, n]) => <strong key={kind}>{n} {results[kind]}</strong>)}</p>
      <ul className="results">
        {ordered.map((one) => {
          const item = items.find((i) => i.action_id === one.action_id)
          return (
            <li key={one.action_id}>
              <State state={states[one.result]} word={results[one.result]} />
              <span className="grow cut">{item ? `${shown(item.tool)} · ${shown(headline(item))}` : one.action_id}</span>
              {one.problem && <span className="why">{shown(one.problem.detail || one.problem.title)}</span>}
            </li>
          )
        })}
      </ul>
    </>
  )
}
