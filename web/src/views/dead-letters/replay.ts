// A replay of many dead letters: some at a time, at a pace, until nothing is left or somebody stops it.
import type { Filter } from '../../lib/filter'

// BulkResult is what the API answers to a request of a replay or of a discard.
export interface BulkResult {
  dry_run: boolean
  action_ids: string[]
  left: number
  left_out: number
  counts: { tool: string; reason: string; count: number }[]
  as_of: string
  ahead_ms: number
}

// Frozen is the filter of the list as it was when the drawer was opened, with what it selected then. What becomes a
// dead letter after as_of is not part of it.
export interface Frozen {
  filter: Filter
  count: number
  leftOut: number
  asOf: string
}

export interface Pace {
  // perSecond is how many become due in a second; undefined is all at once.
  perSecond: number | undefined
}

// freeze makes the filter of a replay from that of the list and the answer to a dry run. With duplicates those of
// unknown outcome are counted among those that are replayed.
export function freeze(filter: Filter, dryRun: BulkResult): Frozen {
  const { until } = filter
  const asOf = typeof until === 'string' && Date.parse(until) < Date.parse(dryRun.as_of) ? until : dryRun.as_of
  return { filter, count: dryRun.left, leftOut: dryRun.left_out, asOf }
}

const sizeAtOnce = 500
// ahead is how much of the schedule is handed out at once, in seconds: what a stop cannot take back any more.
const ahead = 2

// limit returns how many letters one request takes, so that a stop leaves no more than two seconds of the schedule.
export function limit({ perSecond }: Pace): number {
  return perSecond === undefined ? sizeAtOnce : Math.min(1_000, Math.max(1, Math.round(perSecond * ahead)))
}

// body returns the body of one request of a replay.
export function body(frozen: Frozen, pace: Pace, options: { allowDuplicates?: boolean; note?: string }) {
  return {
    filter: { ...frozen.filter, until: frozen.asOf },
    limit: limit(pace),
    ...(pace.perSecond === undefined ? {} : { per_second: pace.perSecond }),
    ...(options.allowDuplicates ? { allow_duplicates: true } : {}),
    ...(options.note ? { note: options.note } : {}),
  }
}

export interface Progress {
  replayed: number
  left: number
  state: 'ready' | 'running' | 'stopped' | 'done' | 'failed'
  // wait is how long to wait before the next request, in milliseconds.
  wait: number
}

export const begin = (frozen: Frozen): Progress => ({
  replayed: 0,
  left: frozen.count,
  state: frozen.count === 0 ? 'done' : 'running',
  wait: 0,
})

// next returns the progress after the answer to a request. A request that replayed nothing ends it, whatever is left:
// the others are somebody else's by now, or no dead letters any more.
export function next(progress: Progress, answer: BulkResult): Progress {
  const replayed = progress.replayed + answer.action_ids.length
  const over = answer.left === 0 || answer.action_ids.length === 0
  const state = over ? 'done' : progress.state
  return { replayed, left: answer.left, state, wait: over ? 0 : Math.max(0, answer.ahead_ms - (ahead * 1_000) / 2) }
}

// paces are the steps of the slider, from slow to all at once.
export const paces: readonly (number | undefined)[] = [
  0.1,
  0.2,
  0.5,
  1,
  2,
  5,
  10,
  20,
  50,
  100,
  200,
  500,
  1_000,
  undefined,
]

// seconds returns how long a number of letters takes at a pace.
export const seconds = (count: number, { perSecond }: Pace): number => (perSecond === undefined ? 0 : count / perSecond)

const reasons: Record<string, string> = {
  refused: 'that were permanently refused',
  exhausted: 'whose attempts are used up',
  unknown: 'whose outcome is unknown',
}

// sentence tells a filter in words.
export function sentence(filter: Filter): string {
  const word = (name: string) => (typeof filter[name] === 'string' ? (filter[name] as string) : undefined)
  const parts = [
    word('tool') && `of ${word('tool')}`,
    word('source') && `of the source ${word('source')}`,
    word('reason') && (reasons[word('reason')!] ?? `with the reason ${word('reason')}`),
    word('code') && `with the code ${word('code')}`,
    word('since') && `made at ${word('since')} or later`,
    word('until') && `made before ${word('until')}`,
  ].filter(Boolean)
  return parts.length === 0 ? 'all dead letters' : `dead letters ${parts.join(', ')}`
}
