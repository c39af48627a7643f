// What is loaded of a list that goes on: pages that were read one after the other, and the first page again and again.
import { skipToken, useQuery, useQueryClient } from '@tanstack/react-query'
import { useCallback, useEffect, useRef, useState } from 'react'
import { get, type Problem } from '../../lib/client'
import { changes, useEvents } from '../../lib/live'

export interface Page<T> {
  items: readonly T[]
  next_cursor: string | null
  // cut says that there were more rows than are kept. What was cut is before the cursor, so nothing is read behind it.
  cut?: boolean
}

// most is how many rows the list keeps: it says so, and a narrower filter finds the others.
export const most = 10_000
const pageSize = 200
// A request goes through a bounded number of rows, so that a page of a rare filter may be empty and not the last. The
// list reads on by itself until it has some rows, or has asked so often.
const enough = 50
const mostAsked = 20

type Order = 'newest' | 'oldest'

const same = <T>(rows: readonly T[]) => rows

// kept returns a page of no more rows than the list keeps.
const kept = <T>(items: readonly T[], { next_cursor, cut = false }: Page<T>): Page<T> => ({
  items: items.slice(0, most),
  next_cursor,
  cut: cut || items.length > most,
})

// joined returns what is loaded after the first page was read again: its rows, and behind them those that were loaded
// before. What the page lacks of its own range does not pass the filter any more. If it is full and has none of the
// rows that were loaded before, rows between were not read, and the list begins anew.
export function joined<T>(
  first: Page<T>,
  before: Page<T> | undefined,
  key: (row: T) => string,
  order: Order,
  size = pageSize,
): Page<T> {
  const last = first.items.at(-1)
  if (!before || before.items.length === 0 || first.next_cursor === null) return first
  if (last === undefined) return before
  const known = new Set(before.items.map(key))
  if (first.items.length >= size && !first.items.some((row) => known.has(key(row)))) return first
  const behind = (row: T) => (order === 'newest' ? key(row) < key(last) : key(row) > key(last))
  const rest = before.items.filter(behind)
  return rest.length === 0 ? first : kept([...first.items, ...rest], before)
}

// extended returns what is loaded after the next page was read.
export function extended<T>(before: Page<T>, next: Page<T>, key: (row: T) => string): Page<T> {
  const known = new Set(before.items.map(key))
  return kept([...before.items, ...next.items.filter((row) => !known.has(key(row)))], next)
}

export interface Rows<T> {
  items: readonly T[] | undefined
  error: Problem | null
  loading: boolean
  // ended says why there are no more rows: the list is at its end, or the page keeps no more.
  ended: 'end' | 'most' | undefined
  more: () => void
  moreError: unknown
  again: () => void
}

export interface Asked<T> {
  // name is the first word of the key under which live events find the rows.
  name: 'actions' | 'workflows' | 'dead-letters'
  to: string
  query: Record<string, string>
  key: (row: T) => string
  order?: Order
  enabled: boolean
  // patch returns rows as live events leave them that were heard after a mark; the same list where they change nothing.
  patch?: (rows: readonly T[], after: number) => readonly T[]
  // view is how much of each row the API is asked for.
  view?: 'summary'
}

// Events change rows some times a second, all together, however many there are.
const patchEvery = 200

// usePatches changes the rows that are loaded as events say.
function usePatches(patch: (after: number) => void) {
  const now = useRef(patch)
  useEffect(() => {
    now.current = patch
  })
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEvents(
    useCallback(() => {
      const mark = changes.mark() - 1
      timer.current ??= setTimeout(() => {
        timer.current = undefined
        now.current(mark)
      }, patchEvery)
    }, []),
  )
  useEffect(() => () => clearTimeout(timer.current), [])
}

// useRows reads a list page by page. Ids grow with the time at which they were made, and lists are in their order.
export function useRows<T>({ name, to, query, key, order = 'newest', enabled, patch = same, view }: Asked<T>): Rows<T> {
  const client = useQueryClient()
  const all = [name, query, 'loaded']
  const first = useQuery<Page<T>, Problem>({
    queryKey: [name, query],
    enabled,
    queryFn: async ({ signal }) => {
      const mark = changes.mark()
      const answer = await get<Page<T>>(to, { ...query, view, limit: pageSize }, signal)
      const page = { ...answer, items: patch(answer.items, mark) }
      client.setQueryData<Page<T>>(all, (before) => joined(page, before, key, order))
      return page
    },
  })
  const loaded = useQuery<Page<T>>({ queryKey: all, queryFn: skipToken })
  const reading = useRef(false)
  const [moreError, setMoreError] = useState<unknown>()
  const page = loaded.data
  const cursor = page?.next_cursor
  const full = page !== undefined && (page.cut || page.items.length >= most)
  const about = JSON.stringify(query)
  const more = useCallback(() => {
    if (!cursor || full || reading.current) return
    reading.current = true
    setMoreError(undefined)
    const asked = JSON.parse(about) as Asked<T>['query']
    const mark = changes.mark()
    get<Page<T>>(to, { ...asked, view, limit: pageSize, cursor })
      .then((answer) => ({ ...answer, items: patch(answer.items, mark) }))
      .then((next) =>
        client.setQueryData<Page<T>>([name, asked, 'loaded'], (before) => before && extended(before, next, key)),
      )
      .catch(setMoreError)
      .finally(() => (reading.current = false))
  }, [about, client, cursor, full, key, name, patch, to, view])
  usePatches((after) =>
    client.setQueryData<Page<T>>(all, (before) => {
      const items = before && patch(before.items, after)
      return items === before?.items ? before : { ...before!, items: items! }
    }),
  )
  const asked = useRef({ about, times: 0 })
  const count = page?.items.length
  useEffect(() => {
    if (asked.current.about !== about) asked.current = { about, times: 0 }
    if (!enabled || count === undefined || count >= enough || !cursor || asked.current.times >= mostAsked) return
    asked.current.times++
    more()
  }, [about, count, cursor, enabled, more])
  return {
    items: page?.items,
    error: first.error,
    loading: first.isPending && page === undefined,
    ended: page === undefined ? undefined : full ? 'most' : cursor === null ? 'end' : undefined,
    more,
    moreError,
    again: () => void first.refetch(),
  }
}
