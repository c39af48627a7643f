// Lists of the API that are read whole, page after page.
import { get } from './client'

interface Page<T> {
  items: readonly T[]
  next_cursor: string | null
}

export type Asked = Readonly<Record<string, string | undefined>>

// pages reads the pages of a list until its end, or until the signal aborts. A cursor that leads to itself is an error:
// the list would have no end.
export async function* pages<T>(
  to: string,
  query: Asked,
  signal?: AbortSignal,
  read: typeof get<Page<T>> = get,
): AsyncGenerator<readonly T[]> {
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page: Page<T> = await read(to, { ...query, limit: 200, cursor }, signal)
    yield page.items
    if (page.next_cursor !== null && page.next_cursor === cursor) throw new Error('The list has no end.')
    cursor = page.next_cursor
  }
}

// all reads every item of a list.
export async function all<T>(to: string, signal?: AbortSignal): Promise<T[]> {
  const items: T[] = []
  for await (const page of pages<T>(to, {}, signal)) items.push(...page)
  return items
}

// most is how many rows of a list of settings are read.
const most = 2_000

export interface Whole<T> {
  items: readonly T[]
  // cut reports whether there are more rows than were read.
  cut: boolean
}

// whole reads a list of settings.
export async function whole<T>(to: string, query: Asked = {}, signal?: AbortSignal): Promise<Whole<T>> {
  const items: T[] = []
  for await (const page of pages<T>(to, query, signal)) {
    items.push(...page)
    if (items.length > most) return { items: items.slice(0, most), cut: true }
  }
  return { items, cut: false }
}
