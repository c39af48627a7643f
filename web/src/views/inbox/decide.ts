// Decisions: what is sent to the API, and what its refusals mean.
import { get, post, Problem, type Schemas } from '../../lib/client'
import { queries } from '../../lib/query'
import type { Json } from '../../lib/json'
import type { Action } from './items'

export type Always = Schemas['Always']
export type Decided = Schemas['DecidedItem']

export interface Decision {
  note?: string | undefined
  args?: Json | undefined
  always?: Always | undefined
}

const path = (id: string, what: string) => `/api/v1/actions/${encodeURIComponent(id)}/${what}`
const quoted = (etag: string) => (etag ? `"${etag}"` : undefined)

export const approve = (id: string, etag: string, decision: Decision) => post<Action>(path(id, 'approve'), { ...decision, note: decision.note || undefined }, quoted(etag)).finally(stale)
export const deny = (id: string, etag: string, note: string) => post<Action>(path(id, 'deny'), { note: note || undefined }, quoted(etag)).finally(stale)
export const edit = (id: string, etag: string, args: Json, note: string) => post<Action>(path(id, 'edit'), { args, note: note || undefined }, quoted(etag)).finally(stale)
export const undo = (id: string) => post<Action>(path(id, 'undo')).finally(stale)

// stale has the lists and the counts read again.
function stale() {
  for (const first of ['inbox', 'inbox-counts', 'action', 'history', 'actions']) void queries.invalidateQueries({ queryKey: [first] })
}

// many decides about any number of actions, 500 at a time, and answers for each in order.
export async function many(verb: 'approve' | 'deny', items: readonly { action_id: string; etag?: string }[], note: string): Promise<Decided[]> {
  const results: Decided[] = []
  try {
    for (let from = 0; from < items.length; from += 500) {
      const part = items.slice(from, from + 500)
      const etags = Object.fromEntries(part.flatMap((item) => (item.etag ? [[item.action_id, item.etag]] : [])))
      const answer = await post<{ items: Decided[] }>(`/api/v1/actions/${verb}`, { ids: part.map((item) => item.action_id), etags, note: note || undefined })
      results.push(...answer.items)
    }
  } finally {
    stale()
  }
  return results
}

export function resolve(id: string, happened: boolean, giveUp: boolean, note: string): Promise<Action> {
  return post<Action>(`/api/v1/dead-letters/${encodeURIComponent(id)}/resolve`, { happened, give_up: giveUp || undefined, note }).finally(stale)
}

export function resolveWorkflow(id: string, abandon: boolean, note: string) {
  return post(`/api/v1/workflows/${encodeURIComponent(id)}/resolve`, { abandon: abandon || undefined, note }).finally(stale)
}

export const readAction = (id: string, signal?: AbortSignal) => get<Action>(`/api/v1/actions/${encodeURIComponent(id)}`, {}, signal)

// told says what a refusal of a decision means for whoever decided, and what they typed.
export function told(error: unknown): string {
  if (!(error instanceof Problem)) return 'The server was not reached, so nobody knows whether it was decided. Look again; what you typed is kept.'
  switch (error.status) {
    case 409:
      return `${error.detail || 'It can no longer be decided.'} What you typed is kept.`
    case 410:
      return 'It is too late: the time to decide is over. Nothing was decided.'
    case 412:
    case 428:
      return 'It changed since you looked. Nothing was decided. Look at what changed; what you typed is kept.'
    case 403:
      return error.detail || 'You may not decide about this.'
    default:
      return `${error.message}${error.detail ? `: ${error.detail}` : ''}. Nothing was decided; what you typed is kept.`
  }
}

// complaintsOf returns the places in the arguments that the server refused.
export function complaintsOf(error: unknown): { pointer: string; detail: string }[] {
  if (!(error instanceof Problem)) return []
  return error.errors.filter((e) => e.pointer === '/args' || e.pointer?.startsWith('/args/')).map((e) => ({ pointer: e.pointer!.slice('/args'.length), detail: e.message }))
}
