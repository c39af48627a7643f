// What waits for a person: its filters in the URL, and its counts.
import { useQuery } from '@tanstack/react-query'
import { get, type Problem, type Schemas } from '../../lib/client'

export type Item = Schemas['InboxItem']
export type Action = Schemas['Action']
export type Kind = Item['kind']

export type Counts = Schemas['InboxCounts']

// names are the filters that stand in the URL, by the names that the API gives them.
const names = [
  'kind',
  'q',
  'cohort',
  'source',
  'tool',
  'session',
  'automation',
  'person',
  'risk',
  'escalated',
  'expires_before',
  'order',
] as const
const several: readonly string[] = ['kind', 'risk']

export type Filters = Partial<Record<(typeof names)[number], string[]>>

// closedOf returns the groups that a URL's query closes: '' is the group without a session.
export const closedOf = (search: string) => new URLSearchParams(search).getAll('closed')

// filtersOf returns the filters of a URL's query. What is none of them is left to others.
export function filtersOf(search: string): Filters {
  const query = new URLSearchParams(search)
  return Object.fromEntries(
    names.flatMap((name) => {
      const values = query.getAll(name).filter((value) => value !== '')
      return values.length ? [[name, several.includes(name) ? values : values.slice(-1)]] : []
    }),
  )
}

// complaints returns the errors in the filters of a URL's query, in words.
export function complaints(search: string): string[] {
  const query = new URLSearchParams(search)
  query.delete('closed')
  return [...new Set(query.keys())].flatMap((name) => {
    const values = query.getAll(name)
    if (!(names as readonly string[]).includes(name)) return [`Unknown filter “${name}”.`]
    if (values.some((value) => value === '')) return [`“${name}” is empty.`]
    if (values.length > 1 && !several.includes(name)) return [`“${name}” is there twice.`]
    return []
  })
}

// known returns the filters of the list and its closed groups in a URL's query.
export const known = (search: string) => searchOf('', { ...filtersOf(search), closed: closedOf(search) })

// searchOf returns the URL's query with other filters. What it had beside the filters stays.
export function searchOf(search: string, change: Filters & { closed?: string[] }): string {
  const query = new URLSearchParams(search)
  for (const [name, values] of Object.entries(change)) {
    query.delete(name)
    for (const value of values ?? []) query.append(name, value)
  }
  const text = query.toString()
  return text ? `?${text}` : ''
}

// words writes filters as a person types them: ana@example.org tool:mail:send risk:high.
export function words(filters: Filters): string {
  return [
    // A colon parts words, as a space does.
    ...(filters.q ?? []).map((value) => value.replaceAll(':', ' ').trim()),
    ...names
      .filter((name) => name !== 'kind' && name !== 'order' && name !== 'q')
      .flatMap((name) => (filters[name] ?? []).map((value) => `${name}:${/\s/.test(value) ? `"${value}"` : value}`)),
  ].join(' ')
}

// typed reads filters as a person types them. A value with spaces is in quotes. Words without a name are searched for;
// one with a colon that names no filter is a tool.
export function typed(text: string): { filters: Filters } | { problem: string } {
  const filters: Filters = Object.fromEntries(
    names.filter((name) => name !== 'kind' && name !== 'order').map((name) => [name, []]),
  )
  const searched: string[] = []
  for (const word of text.match(/[a-z_]+:"[^"]*"|\S+/g) ?? []) {
    const [, name, quoted, plain] = /^([a-z_]+):(?:"([^"]*)"|(.*))$/.exec(word) ?? []
    const value = quoted ?? plain
    const known = name !== undefined && name in filters && name !== 'q'
    if (known && value) filters[name as keyof Filters]!.push(value)
    else if (word.includes(':')) filters.tool!.push(word)
    else searched.push(word)
  }
  if (searched.length) filters.q = [searched.join(' ')]
  const twice = Object.entries(filters).find(([name, values]) => !several.includes(name) && values.length > 1)
  return twice ? { problem: `There can be one ${twice[0]}.` } : { filters }
}

// countsQuery counts the items of every kind.
export function countsQuery(filters: Filters) {
  const rest = { ...filters, kind: undefined, order: undefined }
  return {
    queryKey: ['inbox-counts', rest],
    queryFn: ({ signal }: { signal: AbortSignal }) => get<Counts>('/api/v1/inbox/counts', rest, signal),
  }
}

export const useCounts = (filters: Filters, enabled = true) =>
  useQuery<Counts, Problem>({ ...countsQuery(filters), enabled })

// useItem returns the item that is opened: where the list has not come to it, it is looked for among what waits of its
// tool and session, since who may decide about it stands there.
export function useItem(id: string | undefined, listed: Item | undefined, loaded: boolean): Item | undefined {
  const enabled = id !== undefined && loaded && !listed
  const envelope = useQuery<Action, Problem>({ ...actionQuery(id ?? ''), enabled }).data?.envelope
  const { data } = useQuery<Item | null, Problem>({
    queryKey: ['inbox-item', id],
    enabled: enabled && envelope !== undefined,
    queryFn: async ({ signal }) => {
      const { tool, session_id } = envelope!
      const { items } = await get<{ items: Item[] }>(
        '/api/v1/inbox',
        { tool: `${tool.source}:${tool.name}`, session: session_id, view: 'summary', limit: 200 },
        signal,
      )
      return items.find((item) => keyOf(item) === id) ?? null
    },
  })
  return listed ?? (enabled ? (data ?? undefined) : undefined)
}

// actionQuery reads an action.
export const actionQuery = (id: string) => ({
  queryKey: ['action', id],
  queryFn: ({ signal }: { signal: AbortSignal }) =>
    get<Action>(`/api/v1/actions/${encodeURIComponent(id)}`, {}, signal),
})

// toolQuery reads a tool's definition.
export const toolQuery = (name: string | undefined) => ({
  queryKey: ['config', 'tool', name],
  queryFn: ({ signal }: { signal: AbortSignal }) =>
    get<Schemas['Tool']>(`/api/v1/tools/${encodeURIComponent(name!)}`, {}, signal),
  staleTime: 60_000,
})

// decided says whether items of a kind are approved or denied.
export const decided = (kind: Kind | undefined) => kind === 'approval' || kind === 'question' || kind === 'review'

// keyOf names an item of the inbox.
export const keyOf = (item: Item) => item.action_id
