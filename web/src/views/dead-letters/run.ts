// The requests of a replay or of giving up many, one after the other.
import { useCallback, useEffect, useRef, useState } from 'react'
import { Problem, post } from '../../lib/client'
import { queries } from '../../lib/query'
import { type BulkResult, begin, type Frozen, next, type Progress } from './replay'

export interface Run {
  progress: Progress | undefined
  error: unknown
  start: (frozen: Frozen, to: string, body: () => unknown) => void
  stop: () => void
}

// useRun sends requests until nothing is left, somebody stops it, one is refused, or the component is gone. What was
// asked for when it is stopped is waited for, so that the count is right.
export function useRun(): Run {
  const [progress, setProgress] = useState<Progress>()
  const [error, setError] = useState<unknown>()
  const now = useRef<Progress | undefined>(undefined)
  const wake = useRef<() => void>(undefined)
  const put = useCallback((next: Progress) => {
    now.current = next
    setProgress(next)
  }, [])
  const stop = useCallback(() => {
    if (now.current?.state === 'running') put({ ...now.current, state: 'stopped' })
    wake.current?.()
  }, [put])
  useEffect(() => stop, [stop])
  const start = useCallback(
    (frozen: Frozen, to: string, body: () => unknown) => {
      const pause = (ms: number) =>
        new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, ms)
          wake.current = () => {
            clearTimeout(timer)
            resolve()
          }
        })
      const go = async () => {
        setError(undefined)
        put(begin(frozen))
        while (now.current?.state === 'running') {
          try {
            put(next(now.current, await post<BulkResult>(to, body())))
          } catch (problem) {
            if (!(problem instanceof Problem) || !problem.retryAfter) {
              setError(problem)
              put({ ...now.current, state: 'failed' })
              break
            }
            await pause(problem.retryAfter * 1_000)
            continue
          }
          if (now.current.state === 'running') await pause(now.current.wait)
        }
        for (const word of ['dead-letters', 'dead-letter-summary', 'actions', 'inbox', 'inbox-counts'])
          void queries.invalidateQueries({ queryKey: [word] })
      }
      void go()
    },
    [put],
  )
  return { progress, error, start, stop }
}
