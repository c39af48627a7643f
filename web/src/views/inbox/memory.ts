// What a person has seen, is typing and has decided, by action. It survives going elsewhere in the page, a lost stream and
// a new login; it does not survive a reload.
import { useSyncExternalStore } from 'react'
import { diff, remove } from '../../lib/pointer'
import type { Json } from '../../lib/json'
import { draftOf, put, type Draft } from '../../form/draft'

export type Mode = 'look' | 'edit' | 'deny' | 'note'

export interface Seen {
  etag: string
  args: Json
  at: number
}

// Outcome is what this person's decision came to.
export interface Outcome {
  words: string
  state: 'approved' | 'pending' | 'denied' | 'completed' | 'failed'
}

export interface Memory {
  mode: Mode
  note: string
  seen?: Seen
  draft?: Draft
  outcome?: Outcome
}

const empty: Memory = { mode: 'look', note: '' }
let memories: ReadonlyMap<string, Memory> = new Map()
let decided: ReadonlySet<string> = new Set()
const listeners = new Set<() => void>()

export function recall(id: string): Memory {
  return memories.get(id) ?? empty
}

export function remember(id: string, change: Partial<Memory>) {
  memories = new Map(memories).set(id, { ...recall(id), ...change })
  if (change.outcome) decided = new Set(decided).add(id)
  for (const heard of listeners) heard()
}

function listen(heard: () => void) {
  listeners.add(heard)
  return () => void listeners.delete(heard)
}

export function useMemory(id: string): Memory {
  return useSyncExternalStore(listen, () => recall(id))
}

// useDecided returns what this person decided. It is the same set until there is another decision.
export function useDecided(): ReadonlySet<string> {
  return useSyncExternalStore(listen, () => decided)
}

// rebased returns a draft on arguments that somebody else changed: what the person changed is changed in these.
export function rebased(draft: Draft, seen: Json, now: Json): Draft {
  const mine = diff(seen, draft.args)
  const args = mine.reduce((d, c) => (c.now === undefined ? d : put(d, c.pointer, c.now)), draftOf(now)).args
  const less = mine.filter((c) => c.now === undefined).reverse().reduce<Json>((value, c) => remove(value, c.pointer), args)
  return { args: less, typed: draft.typed }
}
