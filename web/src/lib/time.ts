// Points in time and lengths of time as people read them.
import { useSyncExternalStore } from 'react'

export type Zone = 'local' | 'UTC'

const units = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
] as const

const relatives = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'narrow' })

// relative returns how far at is from now: "4m ago", "in 2h".
export function relative(at: string | Date, now: number): string {
  const away = new Date(at).getTime() - now
  if (Number.isNaN(away)) return ''
  if (Math.abs(away) < 5_000) return 'now'
  const [unit, size] = units.find(([, size]) => Math.abs(away) >= size) ?? units[units.length - 1]!
  return relatives.format(Math.trunc(away / size), unit)
}

const formats = new Map<string, Intl.DateTimeFormat>()

function format(zone: Zone, kind: 'full' | 'day' | 'clock'): Intl.DateTimeFormat {
  const name = zone + kind
  let made = formats.get(name)
  if (!made) {
    const date = { year: 'numeric', month: '2-digit', day: '2-digit' } as const
    const clock = { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' } as const
    made = new Intl.DateTimeFormat('sv-SE', {
      ...(kind === 'clock' ? {} : date),
      ...(kind === 'day' ? {} : clock),
      ...(zone === 'UTC' ? { timeZone: 'UTC' } : {}),
    })
    formats.set(name, made)
  }
  return made
}

// The zone is asked for once: asking costs more than all the rest of showing a time.
const localZone = Intl.DateTimeFormat().resolvedOptions().timeZone

// zoneName returns the name of a zone beside a time.
export function zoneName(zone: Zone): string {
  return zone === 'UTC' ? 'UTC' : localZone
}

// absolute returns at in full: 2026-11-22 10:04:05.
export function absolute(at: string | Date, zone: Zone): string {
  const when = new Date(at)
  return Number.isNaN(when.getTime()) ? '' : format(zone, 'full').format(when)
}

// clock returns the time of day alone where at is on the day of now, else the day as well.
export function clock(at: string | Date, zone: Zone, now: number): string {
  const when = new Date(at)
  if (Number.isNaN(when.getTime())) return ''
  const day = format(zone, 'day')
  return day.format(when) === day.format(now) ? format(zone, 'clock').format(when) : format(zone, 'full').format(when)
}

// duration returns a length of time with its two largest units: 142 ms, 1.5 s, 4 min 10 s, 2 h 4 min, 3 d 1 h.
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1)} s`
  const seconds = Math.round(ms / 1_000)
  const parts: [number, string][] = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3_600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's'],
  ]
  const first = parts.findIndex(([count]) => count > 0)
  return parts
    .slice(first, first + 2)
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(' ')
}

let now = Date.now()
let timer: ReturnType<typeof setInterval> | undefined
const listeners = new Set<() => void>()

function subscribe(heard: () => void) {
  listeners.add(heard)
  timer ??= setInterval(() => {
    now = Date.now()
    for (const each of listeners) each()
  }, 1_000)
  return () => {
    listeners.delete(heard)
    if (listeners.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

// useNow returns the time, in steps of so many milliseconds: a part that shows minutes is not drawn every second.
export function useNow(step = 1_000): number {
  const read = () => Math.floor(now / step) * step
  return useSyncExternalStore(subscribe, read, read)
}
