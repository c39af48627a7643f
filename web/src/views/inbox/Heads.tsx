// The heads of the groups of the list: each closes its group, and marks the whole of it.
import { type ReactNode, useEffect, useMemo, useState } from 'react'
import { useCommands } from '../../lib/keys'
import { shown } from '../../lib/text'
import { Icon } from '../../ui'
import { type Group, type Grouping, groupOf, groupsOf } from './groups'
import { closedOf, type Item, keyOf } from './items'

export interface Grouped {
  by: Grouping
  all: readonly Group[]
  closed: ReadonlySet<string>
  // open are the rows of the groups that are not closed.
  open: Item[]
  fold: (key: string) => void
  // without returns the closed groups other than the item's.
  without: (item: Item | undefined) => string[]
}

// useGroups returns the groups of rows, of which the URL's query closes some; undefined where the order has none.
export function useGroups(
  by: Grouping | undefined,
  rows: readonly Item[],
  { ended }: { ended: string | undefined },
  search: string,
  onClosed: (closed: string[]) => void,
): Grouped | undefined {
  const closed = useMemo(() => new Set(closedOf(search)), [search])
  const all = useMemo(() => (by ? groupsOf(by, rows, ended === 'end') : []), [by, rows, ended])
  const open = useMemo(() => all.flatMap((group) => (closed.has(group.key) ? [] : group.items)), [all, closed])
  if (!by) return undefined
  const others = (key: string | undefined) => [...closed].filter((one) => one !== key)
  return {
    by,
    all,
    closed,
    open,
    fold: (key) => onClosed(closed.has(key) ? others(key) : [...closed, key]),
    without: (item) => others(item && groupOf(by, item)),
  }
}

interface Use {
  id: string | undefined
  marked: ReadonlySet<string>
  markable: (item: Item) => boolean
  onMark: (marked: ReadonlySet<string>) => void
  waits: (item: Item) => boolean
  more: () => void
  // ended reports whether no more can be loaded.
  ended: boolean
}

// useHeads returns the heads by the row that they stand above, and binds their keys to the group of the opened item.
export function useHeads(groups: Grouped | undefined, use: Use): ReadonlyMap<number, ReactNode[]> | undefined {
  const { id, marked, markable, onMark, waits, more, ended } = use
  // whole is the group that is marked as soon as all of it is loaded.
  const [whole, setWhole] = useState<string>()
  const wanted = groups?.all.find((group) => group.key === whole)
  const mark = (group: Group) => {
    const keys = group.items.filter(markable).map(keyOf)
    const all = keys.length > 0 && keys.every((key) => marked.has(key))
    const rest = [...marked].filter((key) => !keys.includes(key))
    onMark(new Set(all ? rest : [...rest, ...keys]))
  }
  const choose = (group: Group) => (group.whole || ended ? mark(group) : setWhole(group.key))
  // biome-ignore lint/correctness/useExhaustiveDependencies: mark is made of what the list has now
  useEffect(() => {
    if (whole === undefined) return
    if (wanted && !wanted.whole && !ended) return more()
    setWhole(undefined)
    if (wanted) mark(wanted)
  }, [whole, wanted, ended, more])
  const now = groups?.all.find((group) => group.items.some((item) => keyOf(item) === id))
  const whyNot = now ? undefined : 'No item is open.'
  useCommands([
    groups && { id: 'mark_group', whyNot, run: () => now && choose(now) },
    groups && { id: 'fold_group', whyNot, run: () => now && groups.fold(now.key) },
  ])
  if (!groups) return undefined
  const heads = new Map<number, ReactNode[]>()
  let row = 0
  for (const group of groups.all) {
    const closed = groups.closed.has(group.key)
    const waiting = group.items.filter(waits).length
    const chosen = group.items.filter(markable)
    const all = chosen.length > 0 && chosen.every((item) => marked.has(keyOf(item)))
    const head = (
      <Head
        key={group.key}
        by={groups.by}
        group={group}
        closed={closed}
        waiting={waiting}
        marks={chosen.length}
        marked={all}
        loading={whole === group.key}
        onFold={() => groups.fold(group.key)}
        onMark={() => choose(group)}
      />
    )
    heads.set(row, [...(heads.get(row) ?? []), head])
    if (!closed) row += group.items.length
  }
  return heads
}

interface HeadProps {
  by: Grouping
  group: Group
  closed: boolean
  waiting: number
  marks: number
  marked: boolean
  loading: boolean
  onFold: () => void
  onMark: () => void
}

function Head({ by, group, closed, waiting, marks, marked, loading, onFold, onMark }: HeadProps) {
  const name = shown(group.key) || 'No session'
  const count = `${waiting.toLocaleString('en')}${group.whole ? '' : '+'}`
  const title = by === 'tool' && group.items[0]?.title
  return (
    <>
      <button type="button" className="group-fold" aria-expanded={!closed} onClick={onFold}>
        <Icon name={closed ? 'right' : 'down'} />
        <strong className="cut">{title ? shown(title) : name}</strong>
        {title && <span className="faint cut">{name}</span>}
        <span className="count">
          {count}
          <span className="unseen"> waiting</span>
        </span>
      </button>
      {(marks > 0 || loading) && (
        <button type="button" className="group-mark" aria-pressed={marked} aria-busy={loading} onClick={onMark}>
          {loading ? 'Loading…' : marked ? 'Unmark all' : 'Mark all'}
          <span className="unseen"> of {name}</span>
        </button>
      )}
    </>
  )
}
