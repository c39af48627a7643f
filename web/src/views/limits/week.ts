// Quiet hours as a week of minutes, as windows, and as lines of text. Clock changes are the server's: a week here has
// no date.
import type { Schemas } from '../../lib/client'

export type Window = Schemas['QuietWindow']

export const days = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const
type Day = (typeof days)[number]

const day = 24 * 60
const minutes = 7 * day

// Week has a 1 for each quiet minute from Monday 00:00 on.
export type Week = Uint8Array

const clock = (minute: number) =>
  `${String(Math.floor(minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}`

function minuteOf(text: string): number {
  const [, hour, minute] = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(text) ?? []
  if (hour === undefined) throw new RangeError(`${text || 'A time'} is not a time such as 08:00.`)
  return Number(hour) * 60 + Number(minute)
}

// span returns the beginning and the end of a window in minutes of its day. It throws a RangeError where it has none.
function span({ from, until }: Window): [from: number, until: number] {
  const begin = minuteOf(from)
  const next = until.endsWith('+1')
  const end = until === '24:00' ? day : minuteOf(next ? until.slice(0, -2) : until) + (next ? day : 0)
  if (end <= begin) throw new RangeError(`${from}-${until} ends before it begins. For the next day, add +1.`)
  if (end - begin > day) throw new RangeError(`${from}-${until} is longer than a day.`)
  return [begin, end]
}

// weekOf returns the minutes that windows cover; a window past Sunday's midnight goes on on Monday.
export function weekOf(windows: readonly Window[]): Week {
  const week = new Uint8Array(minutes)
  for (const window of windows) {
    const [begin, end] = span(window)
    for (const name of window.days?.length ? window.days : days)
      for (let at = begin; at < end; at++) week[(days.indexOf(name) * day + at) % minutes] = 1
  }
  return week
}

// runs returns the quiet runs of a week, each from its first minute to its end, which may be in the next week.
function runs(week: Week): [from: number, until: number][] {
  const found: [number, number][] = []
  const loud = week.indexOf(0)
  if (loud < 0) return [[0, minutes]]
  for (let at = loud; at < loud + minutes; at++) {
    if (!week[at % minutes]) continue
    let end = at
    while (week[end % minutes]) end++
    found.push([at, end])
    at = end
  }
  return found
}

// windowsOf returns the fewest windows of a plain form that cover a week: a run of up to 24 hours is one window, a
// longer one has a window for each day, and equal times on several days are one window.
export function windowsOf(week: Week): Window[] {
  const found = new Map<string, { from: number; until: number; on: Set<number> }>()
  const add = (begin: number, end: number) => {
    const on = Math.floor(begin / day)
    const [from, until] = [begin - on * day, end - on * day]
    const key = `${from} ${until}`
    const one = found.get(key) ?? { from, until, on: new Set() }
    one.on.add(on % 7)
    found.set(key, one)
  }
  for (const [begin, end] of runs(week)) {
    if (end - begin <= day) {
      add(begin, end)
      continue
    }
    for (let at = begin; at < end; ) {
      const next = Math.min(end, (Math.floor(at / day) + 1) * day)
      add(at, next)
      at = next
    }
  }
  return [...found.values()]
    .sort((a, b) => Math.min(...a.on) - Math.min(...b.on) || a.from - b.from)
    .map(({ from, until, on }) => ({
      ...(on.size < 7 && { days: days.filter((_, i) => on.has(i)) }),
      from: clock(from),
      until: until === day ? '24:00' : until > day ? `${clock(until - day)}+1` : clock(until),
    }))
}

// Cell is an hour of the week.
export interface Cell {
  day: number
  hour: number
}

// quietIn returns how much of an hour is quiet.
export function quietIn(week: Week, { day: on, hour }: Cell): 'all' | 'part' | 'none' {
  const begin = on * day + hour * 60
  const sum = week.subarray(begin, begin + 60).reduce((a, b) => a + b, 0)
  return sum === 60 ? 'all' : sum === 0 ? 'none' : 'part'
}

// paint returns a week in which all hours between two corners are quiet, or none.
export function paint(week: Week, a: Cell, b: Cell, quiet: boolean): Week {
  const next = week.slice()
  for (let on = Math.min(a.day, b.day); on <= Math.max(a.day, b.day); on++) {
    const begin = on * day + Math.min(a.hour, b.hour) * 60
    next.fill(quiet ? 1 : 0, begin, on * day + (Math.max(a.hour, b.hour) + 1) * 60)
  }
  return next
}

// move returns the cell that a key leads to; undefined where the key is none of the grid's.
export function move({ day: on, hour }: Cell, key: string): Cell | undefined {
  const clamp = (n: number, most: number) => Math.max(0, Math.min(most, n))
  switch (key) {
    case 'ArrowLeft':
      return { day: clamp(on - 1, 6), hour }
    case 'ArrowRight':
      return { day: clamp(on + 1, 6), hour }
    case 'ArrowUp':
      return { day: on, hour: clamp(hour - 1, 23) }
    case 'ArrowDown':
      return { day: on, hour: clamp(hour + 1, 23) }
    case 'Home':
      return { day: 0, hour }
    case 'End':
      return { day: 6, hour }
    case 'PageUp':
      return { day: on, hour: clamp(hour - 6, 23) }
    case 'PageDown':
      return { day: on, hour: clamp(hour + 6, 23) }
  }
  return undefined
}

// dayText returns days as the command line takes them: mon-fri or sat,sun.
function dayText(on: readonly Day[]): string {
  const at = on.map((name) => days.indexOf(name)).sort((a, b) => a - b)
  const consecutive = at.length > 2 && at[at.length - 1]! - at[0]! === at.length - 1
  return consecutive ? `${days[at[0]!]}-${days[at[at.length - 1]!]}` : at.map((i) => days[i]).join(',')
}

// write returns windows as lines, in the form of the command line.
export const write = (windows: readonly Window[]): string =>
  windows.map(({ days: on, from, until }) => `${on?.length ? `${dayText(on)} ` : ''}${from}-${until}`).join('\n')

function readDays(text: string): Day[] {
  return text.split(',').flatMap((part) => {
    const [first = '', last] = part.trim().split('-')
    const [from, until] = [days.indexOf(first as Day), days.indexOf((last ?? first) as Day)]
    if (from < 0 || until < 0) throw new RangeError(`${part.trim()} is not a day such as mon, or mon-fri.`)
    return Array.from({ length: ((until - from + 7) % 7) + 1 }, (_, i) => days[(from + i) % 7]!)
  })
}

// read returns the windows of lines. It throws a RangeError that names the first wrong line.
export function read(text: string): Window[] {
  const windows: Window[] = []
  for (const [i, line] of text.split('\n').entries()) {
    const trimmed = line.trim()
    if (!trimmed) continue
    try {
      const [, on, from, until] = /^(?:(.*\S)\s+)?([^\s-]*)-(\S*)$/.exec(trimmed) ?? []
      if (from === undefined) throw new RangeError('Write days and times, such as mon-fri 20:00-08:00+1.')
      const window: Window = { ...(on && { days: readDays(on) }), from, until: until! }
      span(window)
      windows.push(window)
    } catch (error) {
      if (error instanceof RangeError) throw new RangeError(`Line ${i + 1}: ${error.message}`)
      throw error
    }
  }
  if (windows.length === 0) throw new RangeError('Set at least one window. To end quiet hours, remove them.')
  return windows
}

const names = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']
const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

// dateText returns the day of a time as its own zone has it: Sun 29 Mar. The zone is the text's, and not the browser's.
export function dateText(at: string): string {
  const date = new Date(`${at.slice(0, 10)}T00:00:00Z`)
  return `${names[date.getUTCDay()]!.slice(0, 3)} ${date.getUTCDate()} ${months[date.getUTCMonth()]}`
}

// timeText returns the time of day of a time as its own zone has it.
export const timeText = (at: string) => at.slice(11, 16)

// lengthText returns the length of an interval: 9 h, or 8 h 30 min.
export function lengthText(from: string, until: string): string {
  const sum = Math.round((Date.parse(until) - Date.parse(from)) / 60_000)
  return [sum >= 60 && `${Math.floor(sum / 60)} h`, sum % 60 > 0 && `${sum % 60} min`].filter(Boolean).join(' ')
}
