// What is loaded of the inbox. A page is read again from where it began, one at a time: whatever a person loaded,
// keeping it up to date costs two pages a second at most.
import { useQuery } from '@tanstack/react-query'
import { useCallback, useEffect, useRef, useState } from 'react'
import { get, type Problem } from '../../lib/client'
import { type Json, same } from '../../lib/json'
import { isPaused } from '../../lib/live'
import { queries } from '../../lib/query'
import { most } from '../actions/rows'
import { opensFirst, readAhead } from './ahead'
import { byGroup } from './groups'
import { type Filters, type Item, keyOf } from './items'

export interface Page {
  items: readonly Item[]
  next_cursor: string | null
}

// Start is where a page begins: behind an item, or at the beginning of the list.
export interface Start {
  cursor: string
  after: Item | undefined
  // readAt is when the page that begins there was asked for last.
  readAt: number
}

export interface Loaded {
  order: string | undefined
  items: readonly Item[]
  starts: readonly Start[]
  next_cursor: string | null
  // staleAt is when the list was last said to have changed: pages that were read before are read again.
  staleAt: number
}

const ranks: Record<string, number> = { high: 0, medium: 1, low: 2 }

// compare orders items as the API does. The place of an item stays where it is as long as the item waits.
export function compare(order: string | undefined, a: Item, b: Item): number {
  const ids = keyOf(a) < keyOf(b) ? -1 : keyOf(a) > keyOf(b) ? 1 : 0
  if (order === 'newest') return -ids
  if (order === 'session' || order === 'tool') return byGroup(order, a, b) || ids
  if (order === 'risk') return (ranks[a.risk] ?? 3) - (ranks[b.risk] ?? 3) || ids
  if (order !== 'expiry') return ids
  const ends = (item: Item) => (item.expires_at ? Date.parse(item.expires_at) : Infinity)
  return ends(a) === ends(b) ? ids : ends(a) - ends(b)
}

// due returns where the page begins that is to be read again next: of those that are stale the one read longest ago.
export function due({ starts, staleAt }: Loaded): Start | undefined {
  const [first] = starts.filter((one) => one.readAt < staleAt).toSorted((a, b) => a.readAt - b.readAt)
  return first
}

// withPage returns what is loaded after the page that begins at a start was read: what the page lacks of its own range
// waits no longer, and what it does not reach stays. An item that is as it was is the same object.
export function withPage(before: Loaded, start: Start, page: Page, readAt: number): Loaded {
  const { order } = before
  const { after } = start
  const last = page.next_cursor === null ? undefined : page.items.at(-1)
  const ahead = after ? before.items.filter((item) => compare(order, item, after) <= 0) : []
  const behind = last ? before.items.filter((item) => compare(order, item, last) > 0) : []
  const known = new Map(before.items.map((item) => [keyOf(item), item]))
  const read = page.items.map((item) => {
    const was = known.get(keyOf(item))
    return was && same(was as unknown as Json, item as unknown as Json) ? was : item
  })
  const items = [...ahead, ...read, ...behind]
  const place = before.starts.findIndex((one) => one.cursor === start.cursor)
  const until = [...before.starts.slice(0, place), { ...start, readAt }]
  // Where the page is the last one now, what began behind it is in it.
  if (behind.length === 0) return { ...before, items, next_cursor: page.next_cursor, starts: until }
  // What follows is read from the last start that the page reaches; where it reaches none, from its end.
  const rest = before.starts.slice(place + 1)
  const beyond = rest.findIndex((one) => compare(order, one.after!, last!) > 0)
  const reached = beyond < 0 ? rest.length : beyond
  const link = reached > 0 ? rest[reached - 1]! : { cursor: page.next_cursor!, after: last, readAt: -1 }
  return { ...before, items, starts: [...until, link, ...rest.slice(reached)] }
}

const beginning: Start = { cursor: '', after: undefined, readAt: 0 }

// begun returns what is loaded after the first page was read, which is read again whenever the list may have changed.
export function begun(before: Loaded | undefined, page: Page, at: number, order: string | undefined): Loaded {
  return {
    ...withPage(
      before ?? { order, items: [], starts: [beginning], next_cursor: null, staleAt: at },
      beginning,
      page,
      at,
    ),
    staleAt: at,
  }
}

// extended returns what is loaded after the page behind all others was read.
export function extended(before: Loaded, cursor: string, page: Page, at: number): Loaded {
  if (before.next_cursor !== cursor) return before
  const start = { cursor, after: before.items.at(-1), readAt: at }
  return withPage({ ...before, starts: [...before.starts, start] }, start, page, at)
}

const size = 200
// A page is read again so long after the one before, and after a failure.
const readEvery = 1_000
const failedFor = 10_000

// The first request of a list asks for few items, which are shown soon. After restAfter milliseconds a second one asks
// for the others of the first page.
const few = 24
const restAfter = 400

const read = (filters: Filters, cursor: string, limit: number, signal?: AbortSignal) =>
  get<Page>('/api/v1/inbox', { ...filters, view: 'summary', limit, cursor }, signal)

// useRounds reads pages that are stale again, one after the other, for as long as there are some.
function useRounds(filters: Filters, loaded: Loaded | undefined) {
  const [failures, setFailures] = useState(0)
  const start = loaded && due(loaded)
  const latest = useRef(filters)
  latest.current = filters
  const [key, cursor] = [JSON.stringify(filters), start?.cursor]
  useEffect(() => {
    if (cursor === undefined) return
    const ended = new AbortController()
    const round = async () => {
      const at = performance.now()
      if (isPaused() || document.hidden) return setFailures((n) => n + 1)
      try {
        const page = await read(latest.current, cursor, size, ended.signal)
        queries.setQueryData<Loaded>(['inbox', latest.current], (before) => {
          const now = before?.starts.find((one) => one.cursor === cursor)
          return before && now ? withPage(before, now, page, at) : before
        })
        setFailures(0)
      } catch {
        if (!ended.signal.aborted) setFailures((n) => n + 1)
      }
    }
    const timer = setTimeout(() => void round(), failures ? failedFor : readEvery)
    return () => {
      clearTimeout(timer)
      ended.abort()
    }
  }, [key, cursor, start?.readAt, failures])
}

// inboxQuery reads the first page of the list.
export function inboxQuery(filters: Filters) {
  const key = ['inbox', filters]
  return {
    queryKey: key,
    structuralSharing: false,
    queryFn: async ({ signal }: { signal: AbortSignal }) => {
      const at = performance.now()
      const known = queries.getQueryData<Loaded>(key) !== undefined
      const page = await read(filters, '', known ? size : few, signal)
      if (!known && page.items[0] && opensFirst()) void readAhead(page.items[0])
      return begun(queries.getQueryData<Loaded>(key), page, at, filters.order?.[0])
    },
  }
}

// useInbox returns the items of the pages that were loaded.
export function useInbox(filters: Filters) {
  const query = useQuery<Loaded, Problem>(inboxQuery(filters))
  const loaded = query.data
  useRounds(filters, loaded)
  const reading = useRef('')
  const [moreError, setMoreError] = useState<unknown>()
  const about = JSON.stringify(filters)
  const cursor = loaded?.next_cursor
  const count = loaded?.items.length ?? 0
  const full = count >= most
  const short = loaded !== undefined && count < size
  const limit = short ? size - count : size
  const more = useCallback(() => {
    if (!cursor || full || reading.current === about + cursor) return
    reading.current = about + cursor
    setMoreError(undefined)
    const asked = JSON.parse(about) as Filters
    const at = performance.now()
    read(asked, cursor, limit)
      .then((page) =>
        queries.setQueryData<Loaded>(['inbox', asked], (before) => before && extended(before, cursor, page, at)),
      )
      .catch(setMoreError)
      .finally(() => (reading.current = ''))
  }, [about, cursor, full, limit])
  useEffect(() => {
    if (!short) return
    const timer = setTimeout(more, restAfter)
    return () => clearTimeout(timer)
  }, [short, more])
  return {
    items: loaded?.items,
    error: query.error,
    isPending: query.isPending,
    refetch: query.refetch,
    // onEnd is called where the list is scrolled to its end.
    onEnd: short ? undefined : more,
    ended: loaded === undefined ? undefined : full ? ('most' as const) : cursor === null ? ('end' as const) : undefined,
    more,
    moreError,
  }
}
