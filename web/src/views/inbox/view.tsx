// The inbox: what waits for a person, as a list and one thing of it in full.
import { lazy, memo, Suspense, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { Link, useLocation, useSearch } from 'wouter'
import type { Schemas } from '../../lib/client'
import { useCommands } from '../../lib/keys'
import { afterPaint } from '../../lib/painted'
import { useSteady } from '../../lib/steady'
import { shown } from '../../lib/text'
import { Button, Empty, Icon, List, Loading, ProblemNote, Tabs } from '../../ui'
import { Export } from '../../ui/export'
import { SavedViews } from '../../ui/saved'
import '../../form/form.css'
import { End } from '../actions/end'
import { AcknowledgeMarked } from './Acknowledge'
import { closed, opensFirst, readAhead } from './ahead'
import { Detail } from './Detail'
import { Facets, Filter, Misread } from './Filter'
import { following, groupingOf } from './groups'
import { useGroups, useHeads } from './Heads'
import { holdsBar, toBar, useHand } from './hand'
import {
  complaints,
  decided,
  type Filters,
  filtersOf,
  type Item,
  type Kind,
  keyOf,
  searchOf,
  useCounts,
  useItem,
} from './items'
import { alike, differences, like } from './likeness'
import { useInbox } from './loaded'
import { useOver } from './memory'
import { Row } from './Row'
import { undoLast } from './sending'
import './inbox.css'

// The sheet for many comes as soon as something is marked.
const loadBatch = () => import('./Batch')
const Batch = lazy(loadBatch)

export default function Inbox({ id: at }: { id?: string }) {
  const search = useSearch()
  const [path, go] = useLocation()
  const [id, openNext] = useNext(at)
  const filters = useMemo(() => filtersOf(search), [search])
  const wrong = useMemo(() => complaints(search), [search])
  const about = JSON.stringify(filters)
  const inbox = useInbox(filters)
  const counts = useCounts(filters)
  const { rows, fresh, showNew } = useSteady(about, inbox.items, keyOf)
  const here = useMemo(() => new Set(inbox.items?.map(keyOf)), [inbox.items])
  const over = useOver()
  const [marked, setMarked] = useState<ReadonlySet<string>>(new Set())
  // The items of a batch stay those that were marked when it was opened, whatever becomes of them meanwhile.
  const [batch, setBatch] = useState<{ verb: 'approve' | 'deny'; items: readonly Item[] }>()
  const by = groupingOf(filters.order?.[0])
  const groups = useGroups(by, rows, inbox, search, (closed) =>
    go(path + searchOf(search, { closed }), { replace: true, state: history.state as unknown }),
  )
  const open = (to: string | undefined, opening = false) => {
    const item = rows.find((one) => keyOf(one) === to)
    const address = `/inbox${to ? `/${to}` : ''}${searchOf(search, groups ? { closed: groups.without(item) } : {})}`
    if (to !== undefined && id !== undefined) return openNext(to, address)
    go(address, { replace: opening, state: to === undefined ? closed : undefined })
  }
  const change = useCallback(
    (next: Filters) => {
      setMarked(new Set())
      // Another order has other groups.
      go(`/inbox${searchOf(search, next.order ? { ...next, closed: [] } : next)}`)
    },
    [go, search],
  )
  const gone = (item: Item) => !here.has(keyOf(item)) && inbox.items !== undefined
  const waits = (item: Item) => !gone(item) && !over.has(keyOf(item))
  const row = rows.findIndex((item) => keyOf(item) === id)
  const item = useItem(id, rows[row] ?? inbox.items?.find((one) => keyOf(one) === id), inbox.items !== undefined)
  const next = following(by, rows, row, waits)
  const follows = useRef(false)
  const onDecided = () => {
    follows.current = holdsBar()
    if (next) open(keyOf(next))
  }
  useFirst(id, about, wrong.length === 0 && inbox.items !== undefined, () => {
    const first = (groups?.open ?? rows).find(waits)
    if (first) open(keyOf(first), true)
  })
  useHand()
  // The focus follows to the action that is opened.
  useEffect(() => {
    if (follows.current) toBar()
    follows.current = false
  }, [id])
  useReadAhead(id === undefined ? undefined : next)
  // biome-ignore lint/correctness/useExhaustiveDependencies: waits is made of over and here
  const chosen = useMemo(
    () => rows.filter((item) => marked.has(keyOf(item)) && decided(item.kind) && waits(item)),
    [rows, marked, over, here],
  )
  const heads = useHeads(groups, {
    id,
    marked,
    markable: (item) => (decided(item.kind) || item.kind === 'notify') && waits(item),
    onMark: setMarked,
    waits,
    more: inbox.more,
    ended: inbox.ended !== undefined || inbox.moreError !== undefined,
  })
  const notices = rows.filter((item) => marked.has(keyOf(item)) && item.kind === 'notify' && waits(item))
  // biome-ignore lint/correctness/useExhaustiveDependencies: waits is made of over and here
  const waiting = useMemo(() => rows.filter(waits), [rows, over, here])
  useCommands([
    { id: 'show_new', whyNot: fresh ? undefined : 'No new items.', run: showNew },
    { id: 'undo', run: undoLast },
    id !== undefined && { id: 'back', run: () => open(undefined) },
  ])
  const ask = rows.filter(gone).length <= 50
  const listed = inbox.items !== undefined
  const draw = useCallback(
    (one: Item) => <Row item={one} gone={listed && !here.has(keyOf(one))} ask={ask} />,
    [listed, here, ask],
  )
  return (
    <div className={id ? 'inbox has-detail' : 'inbox'}>
      {id && <SkipToBar />}
      <section className="inbox-list" aria-label="What waits">
        <header className="inbox-head">
          <div className="row">
            <h1>Inbox</h1>
            <span className="muted grow">{counts.data && summary(counts.data)}</span>
            <Export name="inbox" to="/api/v1/inbox" query={joined(filters)} />
          </div>
          <SavedViews tight />
          <Narrowing counts={counts.data?.by_kind} filters={filters} onChange={change} />
          {fresh > 0 && (
            <button type="button" className="fresh" onClick={showNew}>
              <Icon name="up" />
              {fresh} new<span className="unseen">, show</span>
            </button>
          )}
        </header>
        <div className="inbox-rows">
          {wrong.length > 0 && <Misread search={search} onMend={(to) => go(`/inbox${to}`)} />}
          {wrong.length === 0 && inbox.error && !inbox.items && (
            <ProblemNote error={inbox.error} onRetry={() => void inbox.refetch()} what="The inbox was not loaded" />
          )}
          {inbox.isPending && <Loading what="what waits" />}
          {wrong.length === 0 && inbox.items && rows.length === 0 && (
            <Nothing
              filtered={about !== '{}'}
              onClear={() => change({ ...Object.fromEntries(Object.keys(filters).map((name) => [name, []])) })}
            />
          )}
          {wrong.length === 0 && rows.length > 0 && (
            <List
              label="What waits for a person"
              items={groups?.open ?? rows}
              heads={heads}
              keyOf={keyOf}
              selected={id}
              onSelect={(key) => open(key)}
              onOpen={(key) => open(key)}
              marked={marked}
              onMark={setMarked}
              onEnd={inbox.onEnd}
              rowHeight={72}
              row={draw}
            />
          )}
        </div>
        {(inbox.moreError !== undefined || inbox.ended === 'most') && (
          <End rows={inbox} count={rows.length} of="things that wait" />
        )}
        {marked.size > 0 ? (
          <Marked
            items={chosen}
            notices={notices}
            marked={marked.size}
            onBatch={(verb) => setBatch({ verb, items: chosen })}
            onClear={() => setMarked(new Set())}
            resting={batch !== undefined}
          />
        ) : (
          row >= 0 && (
            <Likeness item={rows[row]!} items={waiting} onMark={(items) => setMarked(new Set(items.map(keyOf)))} />
          )
        )}
      </section>
      <section className="inbox-detail" aria-label="In full">
        {id ? (
          <>
            <SkipToBar />
            <Detail
              id={id}
              item={item}
              onDecided={onDecided}
              marked={marked.size}
              head={
                <Head
                  at={row}
                  of={rows.length}
                  onGo={(to) => rows[to] && open(keyOf(rows[to]!))}
                  back={`/inbox${searchOf(search, {})}`}
                />
              }
            />
          </>
        ) : (
          inbox.items && (
            <Empty title="Nothing is open">
              <p className="muted">Press J, or choose something from the list.</p>
            </Empty>
          )
        )}
      </section>
      {batch && (
        <Suspense>
          <Batch
            verb={batch.verb}
            items={batch.items}
            onClose={(left) => {
              setBatch(undefined)
              setMarked(new Set(left.map(keyOf)))
            }}
          />
        </Suspense>
      )}
    </div>
  )
}

// useNext returns the item that is open, and a function that opens another in its place. The address follows after the
// paint, since browsers do much for another one.
function useNext(at: string | undefined) {
  const [, go] = useLocation()
  const [next, setNext] = useState<{ after: string | undefined; id: string; address: string }>()
  // The address is what counts once it changes.
  if (next && next.after !== at) setNext(undefined)
  useEffect(() => next && afterPaint(() => go(next.address, { replace: true })), [next, go])
  const open = (id: string, address: string) => setNext({ after: at, id, address })
  return [next && next.after === at ? next.id : at, open] as const
}

// useFirst calls open once after a list without an open item was loaded, on a wide window. Items that come later open
// nothing.
function useFirst(id: string | undefined, about: string, loaded: boolean, open: () => void) {
  const looked = useRef<string>(undefined)
  // biome-ignore lint/correctness/useExhaustiveDependencies: open is of the list as it was loaded
  useLayoutEffect(() => {
    if (id !== undefined) looked.current = undefined
    else if (loaded && looked.current !== about) {
      looked.current = about
      if (opensFirst()) open()
    }
  }, [id, about, loaded])
}

// SkipToBar leads the keyboard past the list and the values to the controls of a decision.
function SkipToBar() {
  return (
    <button type="button" className="skip" onClick={toBar}>
      Skip to the decision
    </button>
  )
}

function summary(counts: Schemas['InboxCounts']): string {
  const parts = [`${counts.total.toLocaleString('en')}${counts.capped ? '+' : ''} waiting`]
  if (counts.expiring) parts.push(`${counts.expiring} end soon`)
  if (counts.escalated) parts.push(`${counts.escalated} wait long`)
  for (const source of counts.lost_logins) parts.push(`${shown(source)} has lost its login`)
  for (const { source_id, scopes } of counts.needed_scopes) {
    parts.push(`the login of ${shown(source_id)} lacks ${shown(scopes.join(' '))}`)
  }
  return parts.join(' · ')
}

// useReadAhead reads what is opened after the next decision, while a person still reads what is open.
function useReadAhead(item: Item | undefined) {
  const id = item && keyOf(item)
  // biome-ignore lint/correctness/useExhaustiveDependencies: an item is read once, also where the list changes it later
  useEffect(() => (item ? afterPaint(() => void readAhead(item)) : undefined), [id])
}

// joined returns filters as the API takes them, several with commas between.
const joined = (filters: Filters) =>
  Object.fromEntries(Object.entries(filters).map(([name, values]) => [name, values.join(',')]))

// Narrowing is how the list is narrowed. It is drawn again where a filter or a count changed alone.
const Narrowing = memo(function Narrowing({
  counts,
  filters,
  onChange,
}: {
  counts: Record<Kind, number> | undefined
  filters: Filters
  onChange: (filters: Filters) => void
}) {
  return (
    <>
      <Kinds
        counts={counts}
        chosen={filters.kind?.length === 1 ? (filters.kind[0] as Kind) : 'all'}
        onChoose={(kind) => onChange({ kind: kind === 'all' ? [] : [kind] })}
      />
      <Filter filters={filters} onChange={onChange} />
      <Facets filters={filters} onChange={onChange} />
    </>
  )
})

function Kinds({
  counts,
  chosen,
  onChoose,
}: {
  counts: Record<Kind, number> | undefined
  chosen: Kind | 'all'
  onChoose: (kind: Kind | 'all') => void
}) {
  const count = (n: number | undefined) => n !== undefined && <span className="count">{n.toLocaleString('en')}</span>
  const sum = counts && counts.approval + counts.question + counts.review + counts.unknown + counts.compensation
  return (
    <Tabs
      label="Kind"
      chosen={chosen}
      onChoose={onChoose}
      tabs={[
        { key: 'all', label: <>All {count(sum)}</> },
        { key: 'approval', label: <>Ask {count(counts?.approval)}</> },
        ...(counts?.question || chosen === 'question'
          ? [{ key: 'question' as const, label: <>Questions {count(counts?.question)}</> }]
          : []),
        ...(counts?.review || chosen === 'review'
          ? [{ key: 'review' as const, label: <>Reviews {count(counts?.review)}</> }]
          : []),
        ...(counts?.notify || chosen === 'notify'
          ? [{ key: 'notify' as const, label: <>Done {count(counts?.notify)}</> }]
          : []),
        { key: 'unknown', label: <>Unknown {count(counts?.unknown)}</> },
        { key: 'compensation', label: <>Reversals {count(counts?.compensation)}</> },
      ]}
    />
  )
}

function Head({ at, of, onGo, back }: { at: number; of: number; onGo: (to: number) => void; back: string }) {
  return (
    <p className="detail-head row">
      <Link href={back} className="to-list">
        <Icon name="left" />
        Inbox
      </Link>
      {at >= 0 && (
        <span className="muted">
          {at + 1} of {of}
        </span>
      )}
      <Button
        kind="quiet"
        command="previous"
        whyNot={at > 0 ? undefined : 'This is the first.'}
        onClick={() => onGo(at - 1)}
      />
      <Button
        kind="quiet"
        command="next"
        whyNot={at < of - 1 ? undefined : 'This is the last.'}
        onClick={() => onGo(at + 1)}
      />
    </p>
  )
}

function Nothing({ filtered, onClear }: { filtered: boolean; onClear: () => void }) {
  if (filtered)
    return (
      <Empty title="No items match the filter">
        <Button onClick={onClear}>Show all waiting items</Button>
      </Empty>
    )
  return (
    <Empty title="Nothing waits">
      <p className="muted">
        Actions that need approval and actions with an unknown outcome appear here. Propose one yourself:{' '}
        <code>countersign submit</code>
      </p>
    </Empty>
  )
}

// restFor is the time in milliseconds that an item is open before it is compared with a thousand others.
const restFor = 300

// Likeness counts the items of the list that are like one and, after restFor, names the arguments that differ.
function Likeness({ item, items, onMark }: { item: Item; items: readonly Item[]; onMark: (items: Item[]) => void }) {
  const others = useMemo(() => (decided(item.kind) ? alike(item, items) : []), [item, items])
  const [found, setFound] = useState({ item, differ: differences([]) })
  useEffect(() => {
    const timer = setTimeout(() => setFound({ item, differ: differences([item, ...others]) }), restFor)
    return () => clearTimeout(timer)
  }, [item, others])
  const differ = like(item, found.item) ? found.differ : differences([])
  if (!others.length) return null
  return (
    <p className="likeness row">
      <span className="grow">
        {others.length} like this one: same tool{item.session_id ? ', same session' : ''}
        {differ.pointers.length > 0 && (
          <>
            , differ in{' '}
            {differ.pointers
              .slice(0, 3)
              .map((pointer) => shown(pointer))
              .join(', ')}
            {differ.pointers.length > 3 && ` and ${differ.pointers.length - 3} more`}
          </>
        )}
      </span>
      <Button onClick={() => onMark([item, ...others])}>Mark them</Button>
    </p>
  )
}

function Marked({
  items,
  notices,
  marked,
  onBatch,
  onClear,
  resting,
}: {
  items: readonly Item[]
  // notices are what triage did by itself.
  notices: readonly Item[]
  marked: number
  onBatch: (verb: 'approve' | 'deny') => void
  onClear: () => void
  resting: boolean
}) {
  const differ = useMemo(() => differences(items), [items])
  useEffect(() => void loadBatch(), [])
  const whyNot = items.length ? undefined : 'None of the marked items can be decided together.'
  useCommands([
    !resting && { id: 'approve', whyNot, run: () => onBatch('approve') },
    !resting && { id: 'deny', whyNot, run: () => onBatch('deny') },
    !resting && { id: 'back', run: onClear },
  ])
  return (
    <div className="marked" role="region" aria-label="Marked">
      <p role="status">
        {marked} marked
        {items.length + notices.length < marked && `, ${items.length} can be decided together`}
        {differ.pointers.length > 0 && items.length > 1 && (
          <>
            ; differ in{' '}
            {differ.pointers
              .slice(0, 4)
              .map((pointer) => shown(pointer))
              .join(', ')}
          </>
        )}
      </p>
      <div className="row">
        {notices.length > 0 && <AcknowledgeMarked items={notices} onDone={onClear} />}
        {(items.length > 0 || notices.length === 0) && (
          <>
            <Button kind="primary" command="approve" whyNot={whyNot} onClick={() => onBatch('approve')}>
              Approve {items.length}
            </Button>
            <Button kind="danger" command="deny" whyNot={whyNot} onClick={() => onBatch('deny')}>
              Deny {items.length}…
            </Button>
          </>
        )}
        <Button onClick={onClear}>Unmark</Button>
      </div>
    </div>
  )
}
