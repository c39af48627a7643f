// The sentences of the fleet's state.
import type { Schemas } from '../../lib/client'
import { duration } from '../../lib/time'

export type Overview = Schemas['Overview']

interface Reason {
  word: string
  // ends is the event that ends the wait.
  ends: string
  // held reasons are exceptions: the others are the course of things.
  held: boolean
}

const reasons: Record<string, Reason> = {
  turn: { word: 'next in turn', ends: 'a free worker', held: false },
  approval: { word: 'people', ends: 'a decision, or the end of its time', held: false },
  not_before: { word: 'their time', ends: 'the time that the proposal names', held: false },
  retry: { word: 'the next attempt', ends: 'the pause after a failure', held: false },
  retry_after: { word: 'the provider', ends: 'the time that the provider named', held: true },
  bucket: { word: 'limits', ends: 'the next permit of the bucket', held: false },
  quiet_hours: { word: 'quiet hours', ends: 'the end of the quiet hours', held: false },
  paused: { word: 'a pause', ends: 'somebody who resumes', held: true },
  breaker_open: { word: 'a breaker', ends: 'a trial call that succeeds', held: true },
  login_lost: { word: 'a login', ends: 'a new login of the source', held: true },
  login_unavailable: { word: 'a login', ends: 'an answer of the login’s server', held: true },
  held: { word: 'a recovery', ends: 'countersign recover', held: true },
}

// reasonOf describes a reason for waiting. One that the page does not know is shown as it is.
export const reasonOf = (reason: string): Reason =>
  reasons[reason] ?? { word: reason.replaceAll('_', ' '), ends: 'its gate', held: true }

const count = (n: number) => n.toLocaleString('en')

// nameOf returns the name of a target.
export const nameOf = ({ scope, subject }: { scope: string; subject?: string | undefined }) =>
  subject ? `${scope} ${subject}` : scope

// sentence returns the state in one sentence: "41 due, oldest 0.8 s; 4 in flight; nothing held back but mail: breaker
// open until 10:12". at formats a time.
export function sentence(o: Overview, at: (time: string) => string): string {
  const about = o.estimated ? 'about ' : ''
  const due = Number(o.due)
  const oldest = Number(o.oldest_due_seconds)
  const first =
    due > 0 ? `${about}${count(due)} due${oldest > 0 ? `, oldest ${duration(oldest * 1_000)}` : ''}` : 'Nothing is due'
  const flight = Number(o.in_flight) > 0 ? `; ${count(Number(o.in_flight))} in flight` : ''
  const held = holds(o, at)
  return `${first}${flight}; ${held.length > 0 ? `nothing held back but ${held.join('; ')}` : 'nothing held back'}.`
}

// holds returns the reasons that hold actions back, in words.
function holds(o: Overview, at: (time: string) => string): string[] {
  const most = 3
  const all = [
    ...o.pauses.map((p) => `${nameOf(p)}: ${p.kill ? 'killed' : 'paused'}`),
    ...o.breakers.filter((b) => b.state === 'open').map((b) => `${b.source}: breaker open until ${at(b.open_until)}`),
    ...o.waiting
      .filter((w) => reasonOf(w.reason).held && !['paused', 'breaker_open'].includes(w.reason))
      .map((w) => `${count(Number(w.actions))} for ${reasonOf(w.reason).word}`),
  ]
  return all.length > most ? [...all.slice(0, most), `${all.length - most} more`] : all
}

export type Forecast = Schemas['PauseForecast']

// effect returns the effect of a pause or a kill on the present actions, in words.
export function effect({ pending, undecided, in_flight, at_least }: Forecast, kill: boolean): string {
  const held = Number(pending) + Number(undecided)
  const flight = Number(in_flight)
  const least = at_least ? 'at least ' : ''
  const verb = kill ? 'Ends' : 'Holds'
  const people = Number(undecided) > 0 ? `, ${count(Number(undecided))} of them undecided` : ''
  return `${verb} ${least}${count(held)} pending${people}; ${least}${count(flight)} in flight go on.`
}

// confirmed reports whether a person typed the name of a kill's target.
export const confirmed = (typed: string, { scope, subject }: { scope: string; subject?: string }, tenant: string) =>
  typed.trim() !== '' && typed.trim() === (scope === 'tenant' ? tenant : (subject ?? ''))
