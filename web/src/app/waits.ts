// How much waits for a person: in the document's title, and in a notification of the browser.
import { useQuery } from '@tanstack/react-query'
import { useCallback, useEffect, useRef } from 'react'
import { get, type Problem, type Schemas } from '../lib/client'
import { useEvents } from '../lib/live'
import { useMay } from '../lib/me'
import { usePreferences } from '../lib/preferences'
import { queries } from '../lib/query'

type Counts = Schemas['InboxCounts']

// The key is that of the inbox without a filter, which reads the same.
const key = ['inbox-counts', {}]
const read = ({ signal }: { signal: AbortSignal }) => get<Counts>('/api/v1/inbox/counts', {}, signal)

// A hidden page reads the counts at most so often: nothing else is read then.
const hiddenEvery = 10_000

// titled returns the title of the document.
export const titled = (title: string, waiting: number) => `${waiting > 0 ? `(${waiting}) ` : ''}${title} · Countersign`

// notice returns the text of a notification, or undefined where there is nothing new. It has a number and nothing of
// what waits: other people see a screen that is locked or shared.
export function notice(before: number | undefined, now: number): string | undefined {
  if (before === undefined || now <= before) return undefined
  return now === 1 ? 'One action waits for a person.' : `${now.toLocaleString('en')} actions wait for a person.`
}

function notify(text: string) {
  if (!('Notification' in window) || Notification.permission !== 'granted') return
  // A browser of a phone has no notifications outside of a service worker.
  try {
    const note = new Notification('Countersign', { body: text, tag: 'countersign.inbox', icon: '/icon.png' })
    note.onclick = () => {
      focus()
      note.close()
    }
  } catch {
    // The title has the number.
  }
}

// useWaiting returns how much waits, and notifies a person who looks elsewhere and wants it.
export function useWaiting(): number {
  const may = useMay()
  const { notices } = usePreferences()
  const enabled = may('getInboxCounts') === undefined
  const total = useQuery<Counts, Problem>({ queryKey: key, queryFn: read, enabled }).data?.total
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEvents(
    useCallback(() => {
      if (!document.hidden || !enabled) return
      timer.current ??= setTimeout(() => {
        timer.current = undefined
        void queries.invalidateQueries({ queryKey: key, exact: true })
      }, hiddenEvery)
    }, [enabled]),
  )
  useEffect(() => () => clearTimeout(timer.current), [])
  const before = useRef<number>(undefined)
  useEffect(() => {
    if (total === undefined) return
    const text = notice(before.current, total)
    before.current = total
    if (text && notices === 'on' && document.hidden) notify(text)
  }, [total, notices])
  return total ?? 0
}
