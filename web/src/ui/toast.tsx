// Notes at the lower edge: what was done, and how to take it back.
import { type ReactNode, useSyncExternalStore } from 'react'
import type { CommandID } from '../lib/keys'
import { Button, IconButton } from './button'

export interface ToastContent {
  text: ReactNode
  tone?: 'plain' | 'bad'
  action?: { label: string; command?: CommandID; run: () => void }
  // lastsMs is how long the note stays; 0 keeps it until it is closed. Without it: 8 s.
  lastsMs?: number
}

interface Shown extends ToastContent {
  id: number
}

let shown: readonly Shown[] = []
let count = 0
const listeners = new Set<() => void>()

function set(next: readonly Shown[]) {
  shown = next
  for (const heard of listeners) heard()
}

// most is how many notes are shown at once. What went wrong goes last.
const most = 3

function fitting(all: readonly Shown[]): readonly Shown[] {
  if (all.length <= most) return all
  const first = all.slice(0, -1).find((one) => one.tone !== 'bad') ?? all[0]
  return all.filter((one) => one !== first)
}

// toast shows a note and returns a function that takes it away.
export function toast(content: ToastContent): () => void {
  const id = ++count
  const end = () => set(shown.filter((one) => one.id !== id))
  set(fitting([...shown, { ...content, id }]))
  const lasts = content.lastsMs ?? 8_000
  if (lasts > 0) setTimeout(end, lasts)
  return end
}

export function Toasts() {
  const all = useSyncExternalStore(
    (heard) => {
      listeners.add(heard)
      return () => listeners.delete(heard)
    },
    () => shown,
  )
  const drop = (id: number) => set(shown.filter((one) => one.id !== id))
  const draw = (notes: readonly Shown[]) =>
    notes.map((one) => (
      <div key={one.id} className={`toast ${one.tone ?? 'plain'}`}>
        <span>{one.text}</span>
        {one.action && (
          <Button
            kind="quiet"
            command={one.action.command}
            onClick={() => {
              drop(one.id)
              one.action?.run()
            }}
          >
            {one.action.label}
          </Button>
        )}
        <IconButton icon="cross" label="Close" onClick={() => drop(one.id)} />
      </div>
    ))
  // A note is read out once: not again with the next one, and not when it goes.
  return (
    <div className="toasts">
      <div role="status" aria-atomic="false" aria-relevant="additions">
        {draw(all.filter((one) => one.tone !== 'bad'))}
      </div>
      <div role="alert" aria-atomic="false" aria-relevant="additions">
        {draw(all.filter((one) => one.tone === 'bad'))}
      </div>
    </div>
  )
}
