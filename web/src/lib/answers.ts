// The answers that only a person can give: what became of a call of unknown outcome, and of a reversal that did not
// succeed. The inbox, the dead letters and the workflows offer the same ones.
import { request } from './client'
import type { OperationID } from './me'

export interface Answer {
  label: string
  operation: OperationID
  // text says what follows from it before it is given, and done once it was.
  text: string
  done: string
  state: 'completed' | 'approved' | 'denied'
  path: (id: string) => string
  body: (note: string) => unknown
}

const letter = (id: string) => `/api/v1/dead-letters/${encodeURIComponent(id)}/resolve`
const workflow = (id: string) => `/api/v1/workflows/${encodeURIComponent(id)}/resolve`

// ofUnknown are the answers about a call of unknown outcome, by its action.
export const ofUnknown: readonly Answer[] = [
  {
    label: 'It happened',
    operation: 'resolveDeadLetter',
    text: 'The action counts as sent, and is not sent again.',
    done: 'Recorded: it happened.',
    state: 'completed',
    path: letter,
    body: (note) => ({ happened: true, note }),
  },
  {
    label: 'It did not: run again',
    operation: 'resolveDeadLetter',
    text: 'The action runs again under its old idempotency key.',
    done: 'Recorded: it runs again.',
    state: 'approved',
    path: letter,
    body: (note) => ({ happened: false, note }),
  },
  {
    label: 'It did not: give up',
    operation: 'resolveDeadLetter',
    text: 'The action counts as failed, and is not sent again.',
    done: 'Recorded: it did not happen, and is not tried again.',
    state: 'denied',
    path: letter,
    body: (note) => ({ happened: false, give_up: true, note }),
  },
]

// ofReversal are the answers about a step that could not be reverted, by its workflow.
export const ofReversal: readonly Answer[] = [
  {
    label: 'I reverted it myself',
    operation: 'resolveWorkflow',
    text: 'The steps before it are then reverted.',
    done: 'Recorded: the steps before it are reverted now.',
    state: 'approved',
    path: workflow,
    body: (note) => ({ note }),
  },
  {
    label: 'Leave it as it is',
    operation: 'resolveWorkflow',
    text: 'Nothing more is run or reverted. Completed steps stay.',
    done: 'Recorded: the workflow ended as it is.',
    state: 'approved',
    path: workflow,
    body: (note) => ({ abandon: true, note }),
  },
]

// answerWithin bounds how long an answer of the server is waited for. Behind it nobody knows whether what was asked is
// done.
const answerWithin = 30_000

// decide sends what a person decided, also where the page is closed meanwhile.
export const decide = <T>(path: string, body?: unknown, etag?: string) =>
  request<T>('POST', path, {
    body,
    ifMatch: etag ? `"${etag}"` : undefined,
    outlives: true,
    signal: AbortSignal.timeout(answerWithin),
  }).then((answer) => answer.body)

// give gives an answer.
export const give = <T>(answer: Answer, id: string, note: string) => decide<T>(answer.path(id), answer.body(note))
