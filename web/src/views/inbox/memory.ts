// What a person has seen, is typing and has decided, by action. It survives going elsewhere in the page, a lost stream
// and a new login; it does not survive a reload.
import { useSyncExternalStore } from 'react'
import { type Draft, draftOf, put } from '../../form/draft'
import type { Complaint } from '../../form/editing'
import type { Json } from '../../lib/json'
import { diff, remove } from '../../lib/pointer'

export type Mode = 'look' | 'edit' | 'deny' | 'note'

export interface Seen {
  etag: string
  args: Json
  at: number
}

// Outcome is what this person's decision came to.
export interface Outcome {
  words: string
  state: 'approved' | 'pending' | 'denied' | 'completed' | 'failed' | 'undone'
}

// Sent is a decision that the server has not answered yet.
export interface Sent {
  words: string
  at: number
}

// Refused is a decision that was not made, and why: until the next try.
export interface Refused {
  words: string
  why: string
  complaints: readonly Complaint[]
}

export interface Memory {
  mode: Mode
  note: string
  seen?: Seen | undefined
  draft?: Draft | undefined
  sent?: Sent | undefined
  refused?: Refused | undefined
  outcome?: Outcome | undefined
}

// mostSeen is of how many actions the page keeps what was seen of them, and mostDecided of how many what was decided.
// What somebody typed, what is on its way and what was refused is always kept.
export const mostSeen = 50
export const mostDecided = 5_000

const empty: Memory = { mode: 'look', note: '' }
// The memories, those that changed last at the end.
const memories = new Map<string, Memory>()
let over: ReadonlySet<string> = new Set()
const listeners = new Set<() => void>()

const isOver = ({ outcome, sent }: Memory) => outcome !== undefined || sent !== undefined
const held = ({ mode, note, draft, sent, refused }: Memory) =>
  mode !== 'look' || note !== '' || draft !== undefined || sent !== undefined || refused !== undefined

export function recall(id: string): Memory {
  return memories.get(id) ?? empty
}

export const remember = (id: string, change: Partial<Memory>) => rememberAll([[id, change]])

// rememberAll takes in what became of many actions, and tells of it once.
export function rememberAll(changes: readonly (readonly [id: string, change: Partial<Memory>])[]) {
  for (const [id, change] of changes) {
    const now = { ...recall(id), ...change }
    memories.delete(id)
    memories.set(id, now)
  }
  if (changes.some(([, change]) => change.seen))
    drop(
      mostSeen,
      (memory) => memory.seen !== undefined && !held(memory),
      ({ outcome }) => outcome && { ...empty, outcome },
    )
  if (changes.some(([, change]) => change.outcome))
    drop(
      mostDecided,
      (memory) => memory.outcome !== undefined && !held(memory),
      () => undefined,
    )
  if (changes.some(([id]) => isOver(recall(id)) !== over.has(id)))
    over = new Set([...memories].filter(([, memory]) => isOver(memory)).map(([id]) => id))
  for (const heard of listeners) heard()
}

// drop leaves most of the memories of a kind, those that changed last, and makes of each other one what less does.
function drop(most: number, kind: (memory: Memory) => boolean, less: (memory: Memory) => Memory | undefined) {
  const all = [...memories].filter(([, memory]) => kind(memory))
  for (const [id, memory] of all.slice(0, Math.max(0, all.length - most))) {
    const rest = less(memory)
    if (rest) memories.set(id, rest)
    else memories.delete(id)
  }
}

export function listen(heard: () => void) {
  listeners.add(heard)
  return () => void listeners.delete(heard)
}

export function useMemory(id: string): Memory {
  return useSyncExternalStore(listen, () => recall(id))
}

// useOver returns what this person decided, also what the server has not answered yet. It is the same set until that
// changes.
export function useOver(): ReadonlySet<string> {
  return useSyncExternalStore(listen, () => over)
}

// rebased returns a draft on arguments that somebody else changed: what the person changed is changed in these.
export function rebased(draft: Draft, seen: Json, now: Json): Draft {
  const mine = diff(seen, draft.args)
  const args = mine.reduce((d, c) => (c.now === undefined ? d : put(d, c.pointer, c.now)), draftOf(now)).args
  const less = mine
    .filter((c) => c.now === undefined)
    .reverse()
    .reduce<Json>((value, c) => remove(value, c.pointer), args)
  return { args: less, typed: draft.typed }
}
