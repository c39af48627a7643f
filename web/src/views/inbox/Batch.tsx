// Decisions about many at once: what differs between them, and what became of each.
import { useMemo, useRef, useState } from 'react'
import { stringify } from '../../lib/json'
import { get } from '../../lib/pointer'
import { useCommands } from '../../lib/keys'
import { useMay } from '../../lib/me'
import { shown } from '../../lib/text'
import { Button, Dialog, Field, ProblemNote, State } from '../../ui'
import { many, type Decided } from './decide'
import type { Item } from './items'
import { argsOf, differences, headline } from './likeness'
import { remember } from './memory'
import { whyNotOf } from './reasons'

interface Props {
  verb: 'approve' | 'deny'
  items: readonly Item[]
  onClose: () => void
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
    try {
      const decided = await many(verb, items, note)
      setResults(decided)
      for (const one of decided) if (one.result !== 'refused') remember(one.action_id, { outcome: outcomes[one.result] })
    } catch (e) {
      sent.current = false
      setError(e)
    } finally {
      setBusy(false)
    }
  }
  const word = verb === 'approve' ? 'Approve' : 'Deny'
  return (
    <Dialog
      title={results ? 'What became of each' : `${word} ${items.length}?`} onClose={onClose}
      actions={results ? <Button kind="primary" onClick={onClose}>Close</Button> : (
        <><Button kind={verb === 'approve' ? 'primary' : 'danger'} command="send" busy={busy} whyNot={whyNot} onClick={() => void send()}>{word} {items.length}</Button><Button onClick={onClose}>Cancel</Button></>
      )}
    >
      <Sending run={() => void send()} whyNot={results ? 'It is done.' : whyNot} />
      {Boolean(error) && !results && <ProblemNote error={error} />}
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

// Sending binds the key inside the dialog, where the keys of the page rest.
function Sending({ run, whyNot }: { run: () => void; whyNot: string | undefined }) {
  useCommands([{ id: 'send', run, whyNot }])
  return null
}

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
