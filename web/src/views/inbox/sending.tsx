// Decisions on their way: what a person decided is shown as decided at once, and is taken back where the server refuses
// it.
import { useSyncExternalStore } from 'react'
import { navigate } from 'wouter/use-browser-location'
import { markStale } from '../../lib/live'
import { afterPaint } from '../../lib/painted'
import { queries } from '../../lib/query'
import { shown } from '../../lib/text'
import { Time, toast } from '../../ui'
import { complaintsOf, lists, told, undo } from './decide'
import type { Action } from './items'
import type { Looking } from './looking'
import { listen, type Outcome, remember } from './memory'

// mostUnderway is how many decisions wait for an answer at once. Whoever decides faster than the server answers waits
// for it, so that few are unsettled when the server is gone, and the browser's connections are not all used up.
const mostUnderway = 4

const underway = new Map<string, Promise<Action | undefined>>()

// useQueue says why no other decision can be sent just now; undefined where one can.
export function useQueue(): string | undefined {
  return useSyncExternalStore(listen, () => underway.size) < mostUnderway
    ? undefined
    : `The server has not answered the last ${mostUnderway} decisions yet.`
}

// nameOf names what was decided, in a few words.
export function nameOf({ action, item, tool }: Pick<Looking, 'action' | 'item' | 'tool'>): string {
  const title = shown(tool?.title || item?.title || action.envelope.tool.name)
  const line = item ? shown(item.headline) : ''
  return line ? `${title} · ${line.length > 40 ? `${line.slice(0, 40)}…` : line}` : title
}

interface Sent {
  id: string
  name: string
  // doing is what is shown until the answer comes, and not what is shown where it is a refusal.
  doing: string
  not: string
  send: () => Promise<Action | undefined>
  // done says what the decision came to.
  done: (action: Action | undefined) => Outcome
}

// send sends a decision, and returns at once. What was typed stays until the server has taken it.
export function send({ id, name, doing, not, send: start, done }: Sent) {
  if (underway.has(id) || underway.size >= mostUnderway) return
  const answer = soon(start)
  underway.set(id, answer)
  if (underway.size === 1) addEventListener('beforeunload', ask)
  remember(id, { sent: { words: doing, at: Date.now() }, refused: undefined })
  answer.then(
    (action) => {
      settle(id)
      if (action) queries.setQueryData(['action', id], action)
      else markStale(`action ${id}`)
      remember(id, {
        sent: undefined,
        mode: 'look',
        note: '',
        draft: undefined,
        seen: undefined,
        outcome: done(action),
      })
    },
    (error: unknown) => {
      settle(id)
      refuse(id, not, error)
      void queries.invalidateQueries({ queryKey: ['action', id] })
      toast({
        text: (
          <>
            {name}: {not}. {told(error)}
          </>
        ),
        tone: 'bad',
        lastsMs: 0,
        action: { label: 'Look', run: () => navigate(`/inbox/${id}`) },
      })
    },
  )
}

// soon starts once the next action is painted, or when the page is left before that.
function soon<T>(start: () => Promise<T>): Promise<T> {
  return new Promise((resolve) => {
    const run = () => {
      cancel()
      removeEventListener('pagehide', run)
      resolve(start())
    }
    const cancel = afterPaint(run)
    addEventListener('pagehide', run)
  })
}

function settle(id: string) {
  underway.delete(id)
  if (underway.size === 0) removeEventListener('beforeunload', ask)
  markStale(`history ${id}`, `dead-letter ${id}`, ...lists)
}

// refuse keeps why a decision was not made, until the next try.
export function refuse(id: string, not: string, error: unknown) {
  remember(id, { sent: undefined, refused: { words: not, why: told(error), complaints: complaintsOf(error) } })
}

// ask has the browser ask whoever leaves the page while a decision is on its way. The browser sends it all the same,
// but nobody would hear that it was refused.
function ask(event: BeforeUnloadEvent) {
  event.preventDefault()
}

// The approval that was sent last, which undo is about.
let last: { id: string; name: string } | undefined

// approved says what an approval came to, with undo as long as nothing is sent.
export function approved(id: string, name: string, action: Action): Outcome {
  if (action.phase === 'pending') {
    // A vote cannot be taken back.
    if (last?.id === id) last = undefined
    const left = (action.decision?.approvals_needed ?? 1) - (action.decision?.approvals_given ?? 0)
    toast({ text: `Approval recorded: ${name}. ${left} more needed.` })
    return { words: `approved by you, ${left} more needed`, state: 'pending' }
  }
  const when = action.waiting?.until ?? action.next_attempt_at
  toast({
    text: (
      <>
        Approved: {name}
        {when && new Date(when).getTime() > Date.now() + 2_000 && (
          <>
            , goes out <Time at={when} as="clock" />
          </>
        )}
        .
      </>
    ),
    action: { label: 'Undo', command: 'undo', run: () => takeBack(id, name) },
  })
  return { words: 'approved by you', state: 'approved' }
}

// undoes makes undo be about an approval.
export function undoes(id: string, name: string) {
  last = { id, name }
}

// undoLast takes back what was approved last, once the server has answered, if that is still possible.
export function undoLast() {
  const was = last
  last = undefined
  if (!was) return
  const sent = underway.get(was.id)
  if (!sent) return takeBack(was.id, was.name)
  sent.then(
    (action) => (action?.phase === 'pending' ? undefined : takeBack(was.id, was.name)),
    () => undefined,
  )
}

const takeBack = (id: string, name: string) =>
  void undo(id)
    .then(
      (action) => {
        queries.setQueryData(['action', id], action)
        remember(id, { outcome: { words: 'undone', state: 'undone' } })
        toast({ text: `Undone, and not sent: ${name}` })
      },
      (error: unknown) => toast({ text: `Not undone: ${name}. ${told(error)}`, tone: 'bad' }),
    )
    .finally(() => markStale(`action ${id}`, `history ${id}`, ...lists))
