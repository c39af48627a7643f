// A list in which nothing moves under the hand.
import { useMemo, useRef, useState } from 'react'

export interface Steady<T> {
  rows: T[]
  // fresh counts the items that showNew would add.
  fresh: number
  showNew: () => void
}

// steady returns what is shown of a list. The rows of before keep their places, as they are now or as they were seen
// last; what follows the last of them in now (the next page) is added; what is new elsewhere is counted and not shown.
export function steady<T>(
  before: readonly T[],
  now: readonly T[],
  seen: ReadonlyMap<string, T>,
  keyOf: (item: T) => string,
) {
  const places = new Map(now.map((item, at) => [keyOf(item), at]))
  const known = new Set(before.map(keyOf))
  let end = -1
  for (let at = before.length - 1; at >= 0 && end < 0; at--) end = places.get(keyOf(before[at]!)) ?? -1
  const added = (end < 0 ? [] : now.slice(end + 1)).filter((item) => !known.has(keyOf(item)))
  const rows = before.map((item) => now[places.get(keyOf(item)) ?? -1] ?? seen.get(keyOf(item)) ?? item)
  const shown = [...rows, ...(before.length === 0 ? now : added)]
  return { rows: shown, fresh: now.length - shown.filter((item) => places.has(keyOf(item))).length }
}

// useSteady keeps a list as it was first shown, and the pages that were added to it, until showNew is called or about
// (the filter, in words) changes.
export function useSteady<T>(about: string, items: readonly T[] | undefined, keyOf: (item: T) => string): Steady<T> {
  const [base, setBase] = useState<{ about: string; rows: readonly T[] } | undefined>(undefined)
  // What is shown of a base, as it was seen last: a row that leaves the list stays as it was then, also one of a later
  // page.
  const last = useRef<{ base: readonly T[]; rows: readonly T[]; seen: ReadonlyMap<string, T> }>(undefined)
  if (items && base?.about !== about) setBase({ about, rows: items })
  const { rows, fresh } = useMemo(() => {
    const from = base?.about === about ? base.rows : (items ?? [])
    const known = last.current?.base === from ? last.current : undefined
    const before = known?.rows ?? from
    const next = steady(before, items ?? before, known?.seen ?? new Map(), keyOf)
    last.current = { base: from, rows: next.rows, seen: new Map(next.rows.map((item) => [keyOf(item), item])) }
    return next
  }, [about, base, items, keyOf])
  return { rows, fresh, showNew: () => items && setBase({ about, rows: items }) }
}
