// Live updates: one stream of events a browser. The tab that holds a lock reads the stream and tells the others; when
// the tab is closed, the next one takes over where it was. Events change the cached actions that they are about, and
// mark lists stale.
import { useEffect, useSyncExternalStore } from 'react'
import { forgetEarly, Problem } from './client'
import { parseAnswer } from './json'
import { queries } from './query'
import { Changes, compareIDs, type Event, patch, type Row } from './reduce'
import { sessionEnded } from './session'
import { follow } from './stream'

export interface Status {
  state: 'connecting' | 'live' | 'catching up' | 'lost'
  // since is when the stream was lost, and retryAt when it is tried again, in milliseconds.
  since?: number
  retryAt?: number
}

// What tabs tell each other.
type Told =
  | { kind: 'event'; id: string; event: Event }
  | { kind: 'status'; status: Status }
  | { kind: 'id'; id: string }
  | { kind: 'anyone?' }
  | { kind: 'reread' }

const channelName = 'countersign.live'
const refetchEvery = 1_000
const pollAfter = 60_000
const pollEvery = 10_000
// A page that is hidden or paused for long keeps no more words than these in mind: behind them it reads everything
// again.
const mostStale = 5_000

// changes has what was heard of actions; lists patch their rows with it.
export const changes = new Changes()

let status: Status = { state: 'connecting' }
let paused = false
let lastID = ''
let missed = 0
const stale = new Set<string>()
const hearers = new Set<(event: Event) => void>()
const watchers = new Set<() => void>()
let timer: ReturnType<typeof setTimeout> | undefined
let view = snapshot()

function snapshot() {
  return { status, paused, missed }
}

function changed() {
  view = snapshot()
  for (const heard of watchers) heard()
}

function setStatus(next: Status) {
  status = next
  changed()
}

// words returns the first words of the cached keys that an event may have changed, and the action whose own they are.
function words(event: Event): string[] {
  if (event.kind === 'configured') return ['config', 'me', 'forecast', 'inbox', 'inbox-counts', 'inbox-item']
  if (event.kind === 'retention_reported') return []
  const own = event.action_id
    ? ['action', 'history', 'forecast', 'inbox-item', 'dead-letter'].map((word) => `${word} ${event.action_id}`)
    : []
  return [...own, 'inbox', 'inbox-counts', 'actions', 'workflows', 'workflow', 'dead-letters', 'dead-letter-summary']
}

function apply(event: Event) {
  if (event.action_id && event.phase) {
    queries.setQueryData<Row>(['action', event.action_id], (row) => (row ? patch(row, event) : row))
  }
  for (const heard of hearers) heard(event)
}

// hear takes an event in: at once what is patched, within a second what is read again.
function hear(id: string, event: Event) {
  if (compareIDs(id, lastID) <= 0) return
  lastID = id
  for (const word of words(event)) stale.add(word)
  if (stale.size > mostStale) {
    stale.clear()
    rereadAll()
  }
  if (paused) {
    // All is read again when the person resumes.
    missed++
    changed()
    return
  }
  changes.hear(id, event)
  apply(event)
  later()
}

function later() {
  timer ??= setTimeout(() => {
    timer = undefined
    refetch()
  }, refetchEvery)
}

// refetch reads again what is stale and shown, unless the page is paused or hidden.
function refetch() {
  if (paused || document.hidden || stale.size === 0) return
  const now = new Set(stale)
  stale.clear()
  void queries.invalidateQueries(
    {
      predicate: ({ queryKey: [word, about] }) => now.has(String(word)) || now.has(`${String(word)} ${String(about)}`),
    },
    { cancelRefetch: false },
  )
}

// rereadAll marks all that live events keep up to date as stale: something may have been missed. A dry run stays what
// it was when a person asked for it.
function rereadAll() {
  forgetEarly()
  for (const { queryKey } of queries.getQueryCache().getAll()) stale.add(String(queryKey[0]))
  for (const word of ['me', 'dry-run']) stale.delete(word)
  later()
}

// markStale has what is kept under words read again, as if an event had said that it changed: at most once a second.
export function markStale(...words: string[]) {
  for (const word of words) stale.add(word)
  later()
}

// pause waits, at most until the signal aborts or the browser is online again.
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      removeEventListener('online', end)
      resolve()
    }
    // biome-ignore lint/correctness/noUnusedVariables: end, above, clears it
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end)
    addEventListener('online', end)
  })
}

// lead reads the stream for all tabs until the signal aborts.
async function lead(signal: AbortSignal, tell: (told: Told) => void) {
  let wait = 1_000
  const say = (next: Status) => {
    setStatus(next)
    tell({ kind: 'status', status: next })
  }
  while (!signal.aborted) {
    const resumed = lastID !== ''
    try {
      await follow(
        '/api/v1/events' + (resumed ? `?last_event_id=${lastID}` : ''),
        signal,
        () => {
          wait = 1_000
          say({ state: resumed ? 'catching up' : 'live' })
          // What was read before the stream was open may be older than its beginning.
          if (!resumed) rereadAll()
        },
        (messages) => {
          if (status.state !== 'live') say({ state: 'live' })
          for (const message of messages) {
            if (message.data) {
              const event = parseAnswer(message.data) as unknown as Event
              hear(message.id, event)
              tell({ kind: 'event', id: message.id, event })
            } else if (message.id) {
              if (compareIDs(message.id, lastID) > 0) lastID = message.id
              tell({ kind: 'id', id: message.id })
            }
          }
        },
      )
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof Problem && error.status === 401) {
        sessionEnded()
        return
      }
      if (error instanceof Problem && error.status === 400 && resumed) {
        lastID = ''
        rereadAll()
        tell({ kind: 'reread' })
      }
      if (error instanceof Problem && error.retryAfter) wait = Math.max(wait, error.retryAfter * 1_000)
    }
    if (signal.aborted) return
    say({ state: 'lost', since: status.since ?? Date.now(), retryAt: Date.now() + wait })
    await pause(wait, signal)
    wait = Math.min(wait * 2, 15_000)
  }
}

// listen takes in what the leading tab tells.
function listen(told: Told, leads: boolean, tell: (told: Told) => void) {
  switch (told.kind) {
    case 'event':
      return hear(told.id, told.event)
    case 'id':
      lastID = compareIDs(told.id, lastID) > 0 ? told.id : lastID
      return
    case 'status': {
      // What this tab read before it heard of the stream may be older.
      const first = status.state === 'connecting'
      setStatus(told.status)
      return first ? rereadAll() : undefined
    }
    case 'reread':
      lastID = ''
      return rereadAll()
    case 'anyone?':
      if (leads) tell({ kind: 'status', status })
  }
}

// start follows the stream, or the tab that does, and returns a function that ends it.
function start(): () => void {
  const ended = new AbortController()
  const channel = new BroadcastChannel(channelName)
  const tell = (told: Told) => channel.postMessage(told)
  let leads = false
  channel.onmessage = (message: MessageEvent<Told>) => listen(message.data, leads, tell)
  const { locks } = navigator as { locks?: LockManager }
  if (locks) {
    tell({ kind: 'anyone?' })
    void locks
      .request(channelName, { signal: ended.signal }, () => {
        leads = true
        return lead(ended.signal, tell)
      })
      .catch(() => undefined)
  }
  // Without locks each tab has a stream of its own, while it is shown.
  let own: AbortController | undefined
  const shown = () => {
    if (!locks && document.hidden) own?.abort()
    if (!locks && !document.hidden && (!own || own.signal.aborted)) {
      own = new AbortController()
      void lead(own.signal, () => undefined)
    }
    if (!document.hidden) later()
  }
  shown()
  document.addEventListener('visibilitychange', shown)
  const poll = setInterval(() => {
    if (status.state === 'lost' && Date.now() - (status.since ?? 0) > pollAfter && !document.hidden) rereadAll()
  }, pollEvery)
  return () => {
    ended.abort()
    own?.abort()
    channel.close()
    clearInterval(poll)
    document.removeEventListener('visibilitychange', shown)
    lastID = ''
  }
}

// useLiveUpdates follows the stream while the component is shown: the shell's, once.
export function useLiveUpdates(on: boolean) {
  useEffect(() => (on ? start() : undefined), [on])
}

// useLive returns how live the page is: the status of the stream, whether a person paused it, and how many events came
// since.
export function useLive() {
  return useSyncExternalStore(
    (heard) => {
      watchers.add(heard)
      return () => watchers.delete(heard)
    },
    () => view,
  )
}

// setPaused stops what is shown from changing, or goes on with all that happened since.
export function setPaused(next: boolean) {
  paused = next
  if (!next) missed = 0
  changed()
  if (!next) rereadAll()
}

export const isPaused = () => paused

// useEvents calls hear with each event while the page is not paused.
export function useEvents(hearer: (event: Event) => void) {
  useEffect(() => {
    hearers.add(hearer)
    return () => void hearers.delete(hearer)
  }, [hearer])
}
