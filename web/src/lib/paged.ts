// A long list that is read page by page, in pages that are queries of their own.
import { type UseQueryResult, useQueries, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { Problem } from './client'

interface Page<T> {
  items: readonly T[]
  next_cursor: string | null
}

export interface Paged<T> {
  // pages are those that were read, in order.
  pages: readonly Page<T>[]
  error: Problem | null
  pending: boolean
  // more reads the next page; absent at the end of the list.
  more?: () => void
  loading: boolean
  again: () => void
}

// cursorsOf returns the cursors of the first n pages, as far as they are known: each is in the page before.
export function cursorsOf<T>(n: number, read: (cursor: string) => Page<T> | undefined): string[] {
  const cursors = ['']
  for (let next = read('')?.next_cursor; cursors.length < n && next; next = read(next)?.next_cursor) {
    if (cursors.includes(next)) break // the list would have no end
    cursors.push(next)
  }
  return cursors
}

// usePaged reads a list. After an event, only the pages that are seen are read again: any other one is read again when
// it is seen, and one that was never read at once.
export function usePaged<T>(
  key: readonly unknown[],
  read: (cursor: string | undefined, signal: AbortSignal) => Promise<Page<T>>,
  { enabled, seen }: { enabled: boolean; seen: (page: number) => boolean },
): Paged<T> {
  const cache = useQueryClient()
  const list = JSON.stringify(key)
  const [asked, setAsked] = useState({ list, pages: 1 })
  const wanted = asked.list === list ? asked.pages : 1
  const stored = (cursor: string) => cache.getQueryData<Page<T>>([...key, cursor])
  const cursors = cursorsOf(wanted, stored)
  const results: UseQueryResult<Page<T>, Problem>[] = useQueries({
    queries: cursors.map((cursor, i) => ({
      queryKey: [...key, cursor],
      queryFn: ({ signal }: { signal: AbortSignal }) => read(cursor || undefined, signal),
      staleTime: Infinity, // until an event
      enabled: enabled && (!stored(cursor) || seen(i)),
    })),
  })
  const pages = results.flatMap(({ data }) => data ?? [])
  const last = pages.length === results.length ? pages.at(-1)?.next_cursor : undefined
  return {
    pages,
    error: results.find(({ error }) => error)?.error ?? null,
    pending: pages.length === 0,
    ...(last && { more: () => setAsked({ list, pages: cursors.length + 1 }) }),
    loading: results.some(({ data, isFetching }) => !data && isFetching),
    again: () => {
      for (const one of results) if (one.error || !one.data) void one.refetch()
    },
  }
}
