// Groups of the list: the items of one session or of one tool are adjacent, as the API orders them.
import type { Item } from './items'

export type Grouping = 'session' | 'tool'

// groupingOf returns the grouping of an order.
export const groupingOf = (order: string | undefined): Grouping | undefined =>
  order === 'session' || order === 'tool' ? order : undefined

// groupOf returns the group of an item; '' is the group of those without a session.
export const groupOf = (by: Grouping, item: Item) => (by === 'tool' ? item.tool : (item.session_id ?? ''))

// byteOrder compares texts by the bytes of their UTF-8, as the API does. Units of UTF-16 are in another order.
export function byteOrder(a: string, b: string): number {
  const [left, right] = [[...a], [...b]]
  for (let at = 0; at < left.length && at < right.length; at++) {
    const by = left[at]!.codePointAt(0)! - right[at]!.codePointAt(0)!
    if (by) return by
  }
  return left.length - right.length
}

// byGroup compares the groups of items. Those without a session are last, and a source is before its tools' names.
export function byGroup(by: Grouping, a: Item, b: Item): number {
  const [left, right] = [groupOf(by, a), groupOf(by, b)]
  if (left === right) return 0
  if (by === 'session') return left === '' ? 1 : right === '' ? -1 : byteOrder(left, right)
  const [at, to] = [left.indexOf(':'), right.indexOf(':')]
  return byteOrder(left.slice(0, at), right.slice(0, to)) || byteOrder(left.slice(at + 1), right.slice(to + 1))
}

export interface Group {
  key: string
  items: Item[]
  // whole reports whether all waiting items of the group are loaded.
  whole: boolean
}

// groupsOf returns the groups of rows in their order. Of the last one there may be more where the list has not ended.
export function groupsOf(by: Grouping, rows: readonly Item[], ended: boolean): Group[] {
  const groups = new Map<string, Group>()
  for (const item of rows) {
    const key = groupOf(by, item)
    const group = groups.get(key)
    if (group) group.items.push(item)
    else groups.set(key, { key, items: [item], whole: true })
  }
  const all = [...groups.values()]
  if (!ended && all.length) all.at(-1)!.whole = false
  return all
}

// following returns what comes after a row was decided: the rest of its group first, then what is behind it, then the
// first that waits.
export function following(
  by: Grouping | undefined,
  rows: readonly Item[],
  at: number,
  waits: (item: Item) => boolean,
): Item | undefined {
  const now = rows[at]
  const behind = rows.slice(at + 1).filter(waits)
  const others = rows.filter((item, i) => i < at && waits(item))
  const fellow = (item: Item) => by !== undefined && now !== undefined && groupOf(by, item) === groupOf(by, now)
  return behind.find(fellow) ?? others.find(fellow) ?? behind[0] ?? others[0]
}
