// What can wait until the browser has painted what a person asked for.
import { useEffect, useState } from 'react'

// A page that is not shown has no frames: behind so many milliseconds nothing is waited for.
const atMost = 200

// afterPaint calls run once the next frame was painted, and returns a function that cancels it.
export function afterPaint(run: () => void): () => void {
  let timer = setTimeout(run, atMost)
  const frame = requestAnimationFrame(() => {
    clearTimeout(timer)
    timer = setTimeout(run)
  })
  return () => {
    cancelAnimationFrame(frame)
    clearTimeout(timer)
  }
}

// usePainted reports whether the component was painted since it came.
export function usePainted(): boolean {
  const [painted, setPainted] = useState(false)
  useEffect(() => afterPaint(() => setPainted(true)), [])
  return painted
}
