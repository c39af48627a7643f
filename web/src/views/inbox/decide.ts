// Decisions: what is sent to the API, and what its refusals mean.
import { decide } from '../../lib/answers'
import { get, Problem, post, request, type Schemas } from '../../lib/client'
import type { Json } from '../../lib/json'
import { markStale } from '../../lib/live'
import type { Action } from './items'

export type Always = Schemas['Always']
export type GrantPreview = Schemas['GrantPreview']
export type Decided = Schemas['DecidedItem']

export interface Decision {
  note?: string | undefined
  args?: Json | undefined
  always?: Always | undefined
}

const action = (id: string, what: string, body?: unknown, etag?: string) =>
  decide<Action>(`/api/v1/actions/${encodeURIComponent(id)}/${what}`, body, etag)

export const approve = (id: string, etag: string, decision: Decision) =>
  action(id, 'approve', { ...decision, note: decision.note || undefined }, etag)
// previewAlways reads the grant that approving with always would make, and what it would have let through.
export const previewAlways = (id: string, etag: string, always: Always, signal: AbortSignal) =>
  request<GrantPreview>('POST', `/api/v1/actions/${encodeURIComponent(id)}/always`, {
    body: always,
    ifMatch: etag ? `"${etag}"` : undefined,
    signal,
  }).then((answer) => answer.body)
export const deny = (id: string, etag: string, note: string) => action(id, 'deny', { note: note || undefined }, etag)
export const edit = (id: string, etag: string, args: Json, note: string) =>
  action(id, 'edit', { args, note: note || undefined }, etag)
export const undo = (id: string) => action(id, 'undo')

// acknowledge takes notices off the list, a part at a time.
export async function acknowledge(ids: readonly string[]): Promise<undefined> {
  try {
    for (let from = 0; from < ids.length; from += part)
      await post('/api/v1/inbox/acknowledge', { ids: ids.slice(from, from + part) })
  } finally {
    markStale(...lists)
  }
}

// Many is what became of many: the answers that came, in order, and the error that ended it before all were answered.
export interface Many {
  decided: readonly Decided[]
  error?: unknown
}

// part is how many actions the API decides about at once.
export const part = 500

// many decides about any number of actions, a part at a time. Parts behind one that failed are not sent.
export async function many(
  verb: 'approve' | 'deny',
  items: readonly { action_id: string; etag?: string }[],
  note: string,
): Promise<Many> {
  const decided: Decided[] = []
  try {
    for (let from = 0; from < items.length; from += part) {
      const some = items.slice(from, from + part)
      const etags = Object.fromEntries(some.flatMap((item) => (item.etag ? [[item.action_id, item.etag]] : [])))
      const answer = await post<{ items: Decided[] }>(`/api/v1/actions/${verb}`, {
        ids: some.map((item) => item.action_id),
        etags,
        note: note || undefined,
      })
      decided.push(...answer.items)
    }
    return { decided }
  } catch (error) {
    return { decided, error }
  } finally {
    markStale('action', ...lists)
  }
}

// lists are the words under which the page keeps what a decision changes beside its action.
export const lists = [
  'inbox',
  'inbox-counts',
  'actions',
  'workflows',
  'workflow',
  'dead-letters',
  'dead-letter-summary',
]

// forecastQuery reads what would become of an action if it were approved now.
export const forecastQuery = (id: string) => ({
  queryKey: ['forecast', id],
  queryFn: ({ signal }: { signal: AbortSignal }) =>
    get<Schemas['Forecast']>(`/api/v1/actions/${encodeURIComponent(id)}/forecast`, {}, signal),
  retry: false,
})

const sentence = (detail: string | undefined, otherwise: string) => `${(detail || otherwise).replace(/\.$/, '')}.`

// told says what a refusal of a decision means for whoever decided, and what they typed.
export function told(error: unknown): string {
  if (!(error instanceof Problem))
    return 'The server did not answer, so the decision may or may not be recorded. Load it again; your text is kept.'
  switch (error.status) {
    case 409:
      return `${sentence(error.detail, 'It can no longer be decided')} Your text is kept.`
    case 410:
      return `${sentence(error.detail, 'Too late: the time to decide is over')} Nothing was decided.`
    case 412:
    case 428:
      return 'It changed since you loaded it. Nothing was decided. Review the changes; your text is kept.'
    case 403:
      return error.detail || 'You are not allowed to decide this.'
    default:
      return `${error.message}${error.detail ? `: ${error.detail}` : ''}. Nothing was decided; your text is kept.`
  }
}

// complaintsOf returns the places in the arguments that the server refused.
export function complaintsOf(error: unknown): { pointer: string; detail: string }[] {
  if (!(error instanceof Problem)) return []
  return error.errors
    .filter((e) => e.pointer === '/args' || e.pointer?.startsWith('/args/'))
    .map((e) => ({ pointer: e.pointer!.slice('/args'.length), detail: e.message }))
}
