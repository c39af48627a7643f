// Decisions about many at once: what differs between them, and what became of each.
import { useEffect, useMemo, useRef, useState } from 'react'
import { Marks, MarksAt, useMarks } from '../../form/marks'
import { type Field as Fields, fieldsOf } from '../../form/plan'
import { foldedIn, Long } from '../../form/text'
import { useUnseen } from '../../form/unseen'
import { Values, valuesOf } from '../../form/Values'
import { type Json, stringify } from '../../lib/json'
import { useCommands } from '../../lib/keys'
import { useMay } from '../../lib/me'
import { get } from '../../lib/pointer'
import { queries } from '../../lib/query'
import { shown } from '../../lib/text'
import { Button, Dialog, Field, ProblemNote, Sending, State } from '../../ui'
import { type Decided, many, part } from './decide'
import { actionQuery, type Item } from './items'
import { argsOf, differences } from './likeness'
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
  voted: { words: 'approved by you, more needed', state: 'pending' },
  denied: { words: 'denied by you', state: 'denied' },
} as const

export default function Batch({ verb, items: listed, onClose }: Props) {
  const { items: all, reading } = useWhole(listed, verb === 'approve')
  // out are the rows that a person left out: they stay marked.
  const [out, setOut] = useState<ReadonlySet<string>>(new Set())
  const items = useMemo(() => all.filter((item) => !out.has(item.action_id)), [all, out])
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set())
  const open = (...names: string[]) => setOpened((was) => new Set([...was, ...names]))
  const body = useRef<HTMLDivElement>(null)
  const difference = useMemo(() => differenceOf(items), [items])
  const unread = difference.cells
    .filter(({ text }) => text.length > most)
    .map(({ name }) => name)
    .concat(foldedIn(difference.first))
    .filter((name) => !opened.has(name))
  const unseen = useUnseen(body, difference.names)
  const [note, setNote] = useState('')
  const [busy, setBusy] = useState(false)
  const [results, setResults] = useState<readonly Decided[]>()
  const [error, setError] = useState<unknown>()
  const sent = useRef(false)
  const may = useMay()
  const hidden =
    reading ??
    (unread.length > 0
      ? `${unread.length} values are cut. Show them in full first.`
      : !unseen
        ? 'Wait until all differences are shown.'
        : unseen.length > 0
          ? 'Some values do not fit here. Make the window larger, or decide one by one.'
          : undefined)
  const whyNot =
    (items.length === 0 ? 'Every row is left out.' : undefined) ??
    may(verb === 'approve' ? 'approveActions' : 'denyActions') ??
    (verb === 'approve' ? hidden : undefined)
  const send = async () => {
    if (sent.current) return
    sent.current = true
    setBusy(true)
    const { decided, error: failed } = await many(verb, items, note)
    rememberAll(
      decided.flatMap(({ action_id, result }) =>
        result === 'refused' ? [] : [[action_id, { outcome: outcomes[result], seen: undefined }] as const],
      ),
    )
    setBusy(false)
    setError(failed)
    // What was answered stays on record, also where a later part failed; nothing of it is sent again.
    if (decided.length > 0 || !failed) setResults(decided)
    else sent.current = false
  }
  const answered = new Set(results?.map((one) => one.action_id))
  const left = all.filter((item) => !answered.has(item.action_id))
  const close = () => onClose(left)
  const word = verb === 'approve' ? 'Approve' : 'Deny'
  return (
    <Dialog
      title={results ? 'Results' : `${word} ${items.length}?`}
      onClose={close}
      kind="wide"
      actions={
        results ? (
          <Button kind="primary" onClick={close}>
            Close
          </Button>
        ) : (
          <>
            <Button
              kind={verb === 'approve' ? 'primary' : 'danger'}
              command="send"
              busy={busy}
              whyNot={whyNot}
              onClick={() => void send()}
            >
              {word} {items.length}
            </Button>
            <Button onClick={close}>Cancel</Button>
          </>
        )
      }
    >
      <Sending run={() => void send()} whyNot={results ? 'Done.' : whyNot} />
      {Boolean(error) && <ProblemNote error={error} what={results && unanswered(left.length - out.size)} />}
      {results ? (
        <Results items={items} results={results} />
      ) : (
        <div className="stack" ref={body}>
          <Overview
            all={all}
            items={items}
            difference={difference}
            unread={unread}
            opened={opened}
            open={open}
            onTake={(id, taken) => setOut((was) => new Set(taken ? [...was].filter((o) => o !== id) : [...was, id]))}
          />
          {verb === 'approve' && hidden && (
            <p className="banner tone-person" role="status">
              {hidden} {unread.length > 0 && <Button command="whole" onClick={() => open(...unread)} />}
            </p>
          )}
          <Field label={verb === 'deny' ? 'What the agents should do instead' : 'Note'} hint="The agents read this.">
            {(wiring) => (
              <textarea {...wiring} rows={2} maxLength={500} value={note} onChange={(e) => setNote(e.target.value)} />
            )}
          </Field>
        </div>
      )}
    </Dialog>
  )
}

function unanswered(left: number) {
  const unsent = left > part ? `, and the ${left - part} behind them were not sent` : ''
  return `${Math.min(left, part)} were not answered${unsent}. They stay marked`
}

// most is how much of a value a cell shows before somebody opens it.
const most = 200

interface Cell {
  name: string
  pointer: string
  text: string
}

interface Difference {
  pointers: string[]
  tools: string[]
  cells: Cell[]
  // first has the arguments that the others differ from, and names the values that have to be seen.
  first: Fields
  names: string[]
}

// differenceOf returns every value in which calls differ, and the first call in full.
function differenceOf(items: readonly Item[]): Difference {
  const { pointers, tools } = differences(items)
  const cells = items.flatMap((item) =>
    pointers.map((pointer) => ({
      name: `${item.action_id}${pointer}`,
      pointer,
      text: cellText(get(argsOf(item).args, pointer)),
    })),
  )
  const first = fieldsOf(undefined, items[0] ? argsOf(items[0]).args : {})
  return { pointers, tools, cells, first, names: [...cells.map((cell) => cell.name), ...valuesOf(first)] }
}

const cellText = (value: Json | undefined) =>
  value === undefined ? 'not sent' : typeof value === 'string' ? value || 'empty text' : stringify(value)

// useWhole reads the arguments of which the list has the beginning alone, and says why not all are known.
function useWhole(listed: readonly Item[], wanted: boolean): { items: readonly Item[]; reading: string | undefined } {
  const [items, setItems] = useState(listed)
  const [problem, setProblem] = useState<string>()
  const left = wanted ? items.filter((item) => argsOf(item).cut) : []
  const next = left[0]
  useEffect(() => {
    if (!next) return
    let gone = false
    queries.fetchQuery(actionQuery(next.action_id)).then(
      (action) => {
        const { args_preview: _, args_cut: __, ...rest } = next
        const whole = { ...rest, args: action.envelope.args, etag: action.decision?.etag ?? next.etag } as Item
        if (!gone) setItems((was) => was.map((item) => (item === next ? whole : item)))
      },
      (error: unknown) =>
        !gone &&
        setProblem(
          `Not all arguments could be read${error instanceof Error ? `: ${error.message}` : ''}. Decide one by one.`,
        ),
    )
    return () => {
      gone = true
    }
  }, [next])
  return {
    items,
    reading: problem ?? (left.length > 0 ? `${left.length} have long arguments, which are being read.` : undefined),
  }
}

interface OverviewProps {
  unread: readonly string[]
  // all are the items with those that are left out.
  all: readonly Item[]
  items: readonly Item[]
  difference: Difference
  opened: ReadonlySet<string>
  open: (...names: string[]) => void
  onTake: (id: string, taken: boolean) => void
}

function Overview({
  all,
  items,
  difference: { pointers, tools, cells, first },
  unread,
  opened,
  open,
  onTake,
}: OverviewProps) {
  useCommands([{ id: 'whole', whyNot: unread.length > 0 ? undefined : 'No value is cut.', run: () => open(...unread) }])
  const rows = new Map(items.map((item, row) => [item.action_id, row]))
  const barred = items.filter((item) => whyNotOf(item) !== undefined)
  const grave = items.filter((item) => item.risk === 'high' || !item.reversible)
  const folds = { opened, open }
  const marks = useMarks(items[0]?.lookalikes)
  return (
    <>
      <p>
        {tools.length === 1 ? (
          <>
            All call <strong>{shown(tools[0]!)}</strong>
          </>
        ) : (
          <>{tools.length} tools</>
        )}
        {pointers.length > 0 ? (
          <>
            ; they differ in{' '}
            {pointers.map((pointer, i) => (
              <span key={pointer}>
                {i > 0 && ', '}
                <code>{shown(pointer || 'all arguments')}</code>
              </span>
            ))}
          </>
        ) : (
          items.length > 1 && '; their arguments are the same'
        )}
        .
      </p>
      {grave.length > 0 && (
        <p className="banner tone-person">{grave.length} of them are of high risk or cannot be reverted.</p>
      )}
      {barred.length > 0 && (
        <p className="banner tone-calm">{barred.length} of them you may not decide about; they will be refused.</p>
      )}
      <div className="table-scroll batch-table" tabIndex={0} role="group" aria-label="What differs">
        <table className="table">
          <thead>
            <tr>
              <th scope="col">
                <span className="unseen">taken</span>
              </th>
              <th scope="col">action</th>
              {pointers.map((pointer) => (
                <th scope="col" key={pointer}>
                  <code>{shown(pointer)}</code>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {all.map((item) => {
              const row = rows.get(item.action_id)
              return (
                <tr key={item.action_id} className={row === undefined ? 'out' : undefined}>
                  <td className="taken">
                    <label className="row-mark">
                      <input
                        type="checkbox"
                        aria-label={`Take ${shown(item.headline || item.tool)}`}
                        checked={row !== undefined}
                        onChange={(event) => onTake(item.action_id, event.target.checked)}
                      />
                    </label>
                  </td>
                  <td>{shown(item.tool)}</td>
                  {row === undefined
                    ? pointers.length > 0 && <td colSpan={pointers.length}>left out: {shown(item.headline)}</td>
                    : cells.slice(row * pointers.length, (row + 1) * pointers.length).map(({ name, pointer, text }) => (
                        <td key={name} data-value={name}>
                          <Long text={text} pointer={name} folds={folds} most={most} />
                          <Marked of={item.lookalikes} at={pointer} />
                        </td>
                      ))}
                </tr>
              )
            })}
          </tbody>
        </table>
      </div>
      <section aria-label="The first in full">
        <h3>The first in full{items.length > 1 && ', from which the others differ as above'}</h3>
        <Marks value={marks}>
          <Values of={first} folds={folds} />
        </Marks>
      </section>
    </>
  )
}

function Marked({ of, at }: { of: Item['lookalikes']; at: string }) {
  return (
    <Marks value={useMarks(of)}>
      <MarksAt of={at} />
    </Marks>
  )
}

const states = { approved: 'approved', voted: 'pending', denied: 'denied', refused: 'failed' } as const
const results = { approved: 'approved', voted: 'agreed, more must', denied: 'denied', refused: 'refused' } as const

function Results({ items, results: decided }: { items: readonly Item[]; results: readonly Decided[] }) {
  const counts = (['approved', 'voted', 'denied', 'refused'] as const)
    .map((kind) => [kind, decided.filter((one) => one.result === kind).length] as const)
    .filter(([, n]) => n > 0)
  const ordered = [...decided].sort((a, b) => Number(b.result === 'refused') - Number(a.result === 'refused'))
  return (
    <>
      <p role="status" className="row">
        {counts.map(([kind, n]) => (
          <strong key={kind}>
            {n} {results[kind]}
          </strong>
        ))}
      </p>
      <ul className="results">
        {ordered.map((one) => {
          const item = items.find((i) => i.action_id === one.action_id)
          return (
            <li key={one.action_id}>
              <State state={states[one.result]} word={results[one.result]} />
              <span className="grow cut">{item ? `${shown(item.tool)} · ${shown(item.headline)}` : one.action_id}</span>
              {one.problem && <span className="why">{shown(one.problem.detail || one.problem.title)}</span>}
            </li>
          )
        })}
      </ul>
    </>
  )
}
