// One action's way as a list of entries: what repeats is folded, and what was a wait or a call has its length.
import type { Schemas } from '../../lib/client'

export type Attempt = Schemas['Attempt']

// Item is one entry of an action's history, oldest first. Kinds that the page does not know are shown by their names.
export interface Item {
  at: string
  kind: string
  actor?: string
  note?: string
  detail?: {
    origin?: { via: string; ip?: string; user_agent?: string; request_id?: string }
    mode?: string
    source?: string
    workflow_id?: string
    approvals_needed?: number
    expires_at?: string
    round?: number
    pointers?: string[]
    waiting?: Schemas['Waiting']
    reversal?: { action_id: string; phase: string }
  }
  attempt?: Attempt
}

export type Folded = { item: Item; items?: undefined } | { item?: undefined; items: Item[] }

// foldable is what makes entries repeats of each other; '' for what is never folded: what people did, and ends.
function foldable(item: Item): string {
  if (item.kind === 'waits') return `waits ${item.detail?.waiting?.for ?? ''}`
  if (item.kind === 'attempt' && item.attempt?.code) return `attempt ${item.attempt.status} ${item.attempt.code}`
  return ''
}

// fold puts repeats that follow each other, from three on, into one entry.
export function fold(items: readonly Item[], from = 3): Folded[] {
  const folded: Folded[] = []
  for (let i = 0; i < items.length; ) {
    const what = foldable(items[i]!)
    let end = i + 1
    while (what && end < items.length && foldable(items[end]!) === what) end++
    const run = items.slice(i, end)
    if (run.length >= from) folded.push({ items: run })
    else folded.push(...run.map((item) => ({ item })))
    i = end
  }
  return folded
}

// Span is a part of an action's way in time.
export interface Span {
  kind: 'person' | 'wait' | 'call'
  // What it waits for, or how the call ended, in words.
  words: string
  from: number
  to: number
}

const time = (text: string | null | undefined) => (text ? Date.parse(text) : NaN)
const ends = new Set(['denied', 'expired', 'undone', 'killed', 'ended', 'discarded'])

// spans returns the waits and the calls of an action, in the order of time and without overlaps. now ends what has not
// ended.
export function spans(items: readonly Item[], ended: boolean, now: number): Span[] {
  const made: Span[] = []
  let open: Omit<Span, 'to'> | undefined
  const close = (at: number) => {
    if (open && at > open.from) made.push({ ...open, to: at })
    open = undefined
  }
  const begin = (kind: Span['kind'], words: string, at: number) => {
    close(at)
    open = { kind, words, from: at }
  }
  const ordered = items
    .map((item) => ({ item, from: time(item.attempt?.started_at ?? item.at) }))
    .filter((o) => !Number.isNaN(o.from))
  ordered.sort((a, b) => a.from - b.from)
  let last = -Infinity
  for (const { item, from } of ordered) {
    const at = Math.max(from, last)
    last = at
    if (item.kind === 'asked' || item.kind === 'returned_to_approval') begin('person', 'waits for people', at)
    else if (item.kind === 'proposed' || item.kind === 'approved' || item.kind === 'replayed')
      begin('wait', 'waits for its turn', at)
    else if (item.kind === 'waits') {
      const waiting = item.detail?.waiting
      if (waiting?.for !== 'approval') begin('wait', `waits for ${waiting?.message ?? 'its turn'}`, at)
    } else if (item.kind === 'attempt' && item.attempt) {
      const to = Math.max(at, time(item.attempt.finished_at) || at)
      close(at)
      made.push({
        kind: 'call',
        words: `attempt ${item.attempt.attempt}: ${item.attempt.code || item.attempt.status}`,
        from: at,
        to,
      })
      last = to
      open = { kind: 'wait', words: 'waits for its next attempt', from: to }
    } else if (ends.has(item.kind)) close(at)
  }
  if (!ended) close(now)
  return made
}

export interface Placed extends Span {
  // Where the span begins and how wide it is, as parts of 1.
  x: number
  width: number
}

// place lays spans beside each other to scale, save that none is narrower than least: what is shorter than that gets
// it, and the others share the rest by their lengths. So a call of 98 ms beside a wait of two hours can be seen.
export function place(all: readonly Span[], least = 0.006): Placed[] {
  const floor = Math.min(least, 1 / Math.max(1, all.length))
  const lengths = all.map((s) => Math.max(0, s.to - s.from))
  const narrow = new Set<number>()
  const share = () => {
    const rest = 1 - narrow.size * floor
    const sum = lengths.reduce((total, length, i) => (narrow.has(i) ? total : total + length), 0)
    return sum > 0 ? rest / sum : 0
  }
  let unit = share()
  for (;;) {
    const more = lengths.flatMap((length, i) => (!narrow.has(i) && length * unit < floor ? [i] : []))
    if (more.length === 0) break
    for (const i of more) narrow.add(i)
    unit = share()
  }
  let x = 0
  return all.map((span, i) => {
    const width = narrow.has(i) ? floor : lengths[i]! * unit
    const placed = { ...span, x, width }
    x += width
    return placed
  })
}
