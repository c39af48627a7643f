// What can wait until the browser has painted what a person asked for.
import { useEffect, useState } from 'react'

// A page that is not shown has no frames: behind so many milliseconds nothing is waited for.
const atMost = 200

let waiting: Set<() => void> | undefined

// afterPaint calls run once the next frame was painted, and returns a function that cancels it. Functions that wait for
// the same frame are called in one task, so that React draws their changes once.
export function afterPaint(run: () => void): () => void {
  waiting ??= forFrame()
  const all = waiting
  const own = () => run()
  all.add(own)
  return () => void all.delete(own)
}

function forFrame() {
  const all = new Set<() => void>()
  const runAll = () => {
    if (waiting === all) waiting = undefined
    for (const run of all)
      try {
        run()
      } catch (error) {
        reportError(error)
      }
    all.clear()
  }
  let timer = setTimeout(runAll, atMost)
  requestAnimationFrame(() => {
    clearTimeout(timer)
    if (waiting === all) waiting = undefined
    timer = setTimeout(runAll)
  })
  return all
}

// usePainted reports whether an item was painted since the component shows it.
export function usePainted(item: string): boolean {
  const [painted, setPainted] = useState<string>()
  useEffect(() => afterPaint(() => setPainted(item)), [item])
  return painted === item
}
