// The limits of a bucket, as they are typed, and an estimate of the time that waiting actions take under them.
import type { Schemas } from '../../lib/client'

export type Limits = Schemas['BucketLimits']
export type State = Schemas['BucketState']

// Draft is limits as a person types them. An empty number leaves its limit out.
export interface Draft {
  rate: string
  per: string
  burst: string
  calendar: string
  every: 'hour' | 'day' | 'week' | 'month'
  timezone: string
  concurrency: string
}

const text = (value: number | undefined) => (value === undefined ? '' : String(value))

// draftOf returns limits as they are typed.
export const draftOf = (limits: Limits | null): Draft => ({
  rate: text(limits?.rate?.limit),
  per: limits?.rate?.per ?? '1m',
  burst: text(limits?.rate?.burst),
  calendar: text(limits?.calendar?.limit),
  every: limits?.calendar?.every ?? 'day',
  timezone: limits?.calendar?.timezone ?? '',
  concurrency: text(limits?.concurrency),
})

// whole returns a whole number of at least 1, or undefined where the field is empty.
function whole(field: string, value: string): number | undefined {
  const typed = value.trim()
  if (typed === '') return undefined
  if (!/^[1-9][0-9]{0,9}$/.test(typed)) throw new RangeError(`${field} must be a whole number of at least 1.`)
  return Number(typed)
}

// limitsOf returns the limits that a draft means. It throws a RangeError that names the first wrong field.
export function limitsOf(draft: Draft): Limits {
  const rate = whole('Rate', draft.rate)
  const burst = whole('Burst', draft.burst)
  const calendar = whole('Calendar', draft.calendar)
  const concurrency = whole('Concurrent calls', draft.concurrency)
  if (rate === undefined && burst !== undefined) throw new RangeError('Burst needs a rate.')
  return {
    ...(rate !== undefined && { rate: { limit: rate, per: draft.per.trim(), ...(burst !== undefined && { burst }) } }),
    ...(calendar !== undefined && {
      calendar: { limit: calendar, every: draft.every, ...(draft.timezone && { timezone: draft.timezone }) },
    }),
    ...(concurrency !== undefined && { concurrency }),
  }
}

// limitsIn returns the limits of a bucket alone.
export function limitsIn({ rate, calendar, concurrency }: Limits): Limits {
  return { ...(rate && { rate }), ...(calendar && { calendar }), ...(concurrency !== undefined && { concurrency }) }
}

const units: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

// milliseconds returns the length of a duration such as 1h30m; NaN where it is none.
export function milliseconds(duration: string): number {
  if (!/^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/.test(duration)) return Number.NaN
  let sum = 0
  for (const [, count, unit] of duration.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)) sum += Number(count) * units[unit!]!
  return sum
}

const periods = { hour: 3_600_000, day: 86_400_000, week: 7 * 86_400_000, month: 30 * 86_400_000 }

export interface Estimate {
  // count is the number of actions that wait; more reports whether the server stopped counting there.
  count: number
  more: boolean
  // last is when the last of them goes, in milliseconds; undefined where no limit tells.
  last: number | undefined
}

const mostCounted = 100_000

// estimate returns when the last of the actions that wait in a bucket would go under limits, if all of them were due
// now and no other came. A period of a calendar counts from now, so that the true time may be up to one period earlier.
export function estimate(state: State, limits: Limits, now: number): Estimate {
  const count = state.due + state.waiting
  const more = state.due >= mostCounted || state.waiting >= mostCounted
  const { rate, calendar } = limits
  if (!rate && !calendar) return { count, more, last: undefined }
  const begin = Math.max(now, Date.parse(state.closed_until ?? '') || 0)
  if (count === 0) return { count, more, last: begin }
  let wait = 0
  if (rate) {
    const burst = rate.burst ?? 1
    const ready = begin > now ? burst : Math.min(burst, state.permits ?? burst)
    wait = Math.max(0, count - ready) * (milliseconds(rate.per) / rate.limit)
  }
  if (calendar) {
    const used = state.calendar?.every === calendar.every ? (state.calendar_used ?? 0) : 0
    const left = count - Math.max(0, calendar.limit - used)
    if (left > 0) {
      const full = Math.ceil(left / calendar.limit)
      const rest = left - (full - 1) * calendar.limit
      const paced = rate ? (rest - 1) * (milliseconds(rate.per) / rate.limit) : 0
      wait = Math.max(wait, full * periods[calendar.every] + paced)
    }
  }
  return { count, more, last: Number.isNaN(wait) ? undefined : begin + wait }
}

// rateText returns a rate in words: 30 per 1m, 5 at a time.
export const rateText = ({ limit, per, burst }: NonNullable<Limits['rate']>) =>
  `${limit.toLocaleString('en')} per ${per}${(burst ?? 1) > 1 ? `, ${burst!.toLocaleString('en')} at a time` : ''}`

// calendarText returns a limit by the calendar in words: 500 a day, Europe/Berlin.
export const calendarText = ({ limit, every, timezone }: NonNullable<Limits['calendar']>) =>
  `${limit.toLocaleString('en')} ${every === 'hour' ? 'an' : 'a'} ${every}${timezone ? `, ${timezone}` : ''}`

// standing returns the state of a bucket: a name of a state, and a word.
export function standing(state: State, now: number): [state: string, word: string] {
  if (state.retired_at) return ['skipped', 'retired']
  if (state.paused) return ['paused', 'paused']
  if (Date.parse(state.closed_until ?? '') > now) return ['failed', `closed by ${state.closed_by || 'a provider'}`]
  if (Date.parse(state.opens_at ?? '') > now) return ['waiting', 'used up']
  return ['completed', 'open']
}
