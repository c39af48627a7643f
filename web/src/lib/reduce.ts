// What the stream of events changes in what the page has read: pure functions, which give the same rows for the same
// events in whatever order they arrive, and however often.
import type { Schemas } from './client'

export type Event = Schemas['Event']

// Row is what an event can change of an action that was read.
export type Row = Pick<Schemas['Action'], 'envelope' | 'phase' | 'waiting'>

// compareIDs orders the ids of events as they were committed. An id that is none comes before all others.
export function compareIDs(a: string, b: string): number {
  const [left, right] = [parts(a), parts(b)]
  for (let i = 0; i < 3; i++) {
    if (left[i]! !== right[i]!) return left[i]! < right[i]! ? -1 : 1
  }
  return 0
}

function parts(id: string): bigint[] {
  return /^\d+-\d+-\d+$/.test(id) ? id.split('-').map(BigInt) : [-1n, 0n, 0n]
}

interface Heard {
  id: string
  // When it was heard, as the count of all that was heard before.
  serial: number
  event: Event
}

// Changes keeps the newest event that says how an action stands, for the actions that were heard of last.
export class Changes {
  private readonly newest = new Map<string, Heard>()
  private serial = 0
  private readonly most: number

  constructor(most = 10_000) {
    this.most = most
  }

  // hear notes an event and reports whether it is news: whether it says more than what was heard before.
  hear(id: string, event: Event): boolean {
    const action = event.action_id
    if (action === undefined || event.phase === undefined) return false
    const known = this.newest.get(action)
    if (known && compareIDs(id, known.id) <= 0) return false
    this.newest.delete(action)
    this.newest.set(action, { id, serial: ++this.serial, event })
    if (this.newest.size > this.most) this.newest.delete(this.newest.keys().next().value!)
    return true
  }

  // mark is the time before a read is sent: what is heard after it may be newer than the answer.
  mark(): number {
    return this.serial
  }

  // event returns the newest event of an action that was heard after a mark.
  event(action: string, after = 0): Event | undefined {
    const known = this.newest.get(action)
    return known && known.serial > after ? known.event : undefined
  }
}

// patch returns the action as an event leaves it; the same object where it changes nothing.
export function patch<T extends Row>(row: T, event: Event): T {
  const { envelope } = row
  const phase = event.phase ?? row.phase
  const status = event.status ?? envelope.result.status
  const approval = event.approval ?? envelope.approval
  const attempts = Math.max(event.attempt ?? 0, Number(envelope.result.attempts))
  if (
    phase === row.phase &&
    status === envelope.result.status &&
    approval === envelope.approval &&
    attempts === Number(envelope.result.attempts)
  )
    return row
  return {
    ...row,
    phase,
    // What an action waited for holds no longer once its phase is another; what it waits for now is in the next answer.
    waiting: phase === row.phase ? row.waiting : null,
    envelope: { ...envelope, approval, result: { ...envelope.result, status, attempts } },
  }
}

// patchAll returns rows as the changes that were heard after a mark leave them; the same list where nothing changes.
export function patchAll<T extends Row>(rows: readonly T[], changes: Changes, after = 0): readonly T[] {
  let changed = false
  const patched = rows.map((row) => {
    const event = changes.event(row.envelope.action_id, after)
    const now = event ? patch(row, event) : row
    changed ||= now !== row
    return now
  })
  return changed ? patched : rows
}
