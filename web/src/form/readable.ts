// Values as a person writes them: dates with their day and zone, amounts with their currency. They stand beside the
// exact value, and never in its place.
import { Exact, isObject, type Json, stringify } from '../lib/json'
import { relative, type Zone, zoneName } from '../lib/time'

const instant = /^(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?(Z|z|[+-]\d\d:?\d\d)?)?$/

interface Described {
  name: string
  value: Json | undefined
  description: string | undefined
}

// readable returns how a person would write a value, or undefined where that says no more than the value. beside is the
// object that the value is in.
export function readable(field: Described, beside: Json | undefined, zone: Zone, now: number): string | undefined {
  const { value } = field
  if (typeof value === 'string') return date(value, zone, now) ?? amount(field, value, beside)
  if (typeof value !== 'number' && !(value instanceof Exact)) return undefined
  const digits = stringify(value)
  return epoch(field.name, digits, zone, now) ?? amount(field, digits, beside)
}

function date(text: string, zone: Zone, now: number): string | undefined {
  const match = instant.exec(text)
  if (!match) return undefined
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map((part) => Number(part ?? 0))
  const plain = new Date(Date.UTC(year!, month! - 1, day, hour, minute, second))
  plain.setUTCFullYear(year!)
  if (plain.getUTCMonth() !== month! - 1 || plain.getUTCDate() !== day || hour! > 23 || minute! > 59 || second! > 59)
    return 'not in the calendar'
  if (match[4] === undefined) return format(plain, 'day', 'UTC')
  if (match[7] === undefined) return `${format(plain, 'time', 'UTC')}, no time zone given`
  const [, sign, hours, minutes] = /^([+-])(\d\d):?(\d\d)$/.exec(match[7]) ?? ['', '+', '0', '0']
  const away = (Number(hours) * 60 + Number(minutes)) * (sign === '-' ? -1 : 1)
  return moment(new Date(plain.getTime() - away * 60_000), zone, now)
}

function moment(at: Date, zone: Zone, now: number): string {
  const name = zone === 'UTC' ? '' : ` (${zoneName(zone)})`
  return `${format(at, 'time', zone)} ${format(at, 'offset', zone)}${name}, ${relative(at, now)}`
}

const timeWords =
  /(?:^|[_-]|[a-z](?=[A-Z]))(?:at|time|timestamp|ts|date|until|since|expire[sd]?|expiry|deadline|start|end)$/i

// epoch reads a number as seconds or milliseconds since 1970, where its name is that of a time.
function epoch(name: string, digits: string, zone: Zone, now: number): string | undefined {
  if (!timeWords.test(name) || !/^[1-3]\d{9}(?:\d{3})?$/.test(digits)) return undefined
  const [factor, unit] = digits.length === 10 ? [1_000, 'seconds'] : [1, 'milliseconds']
  return `${moment(new Date(Number(digits) * factor), zone, now)}, if ${unit} since 1970`
}

const amountWords =
  /(?:^|[_-]|[a-z](?=[A-Z]))(?:amounts?|price|total|subtotal|cost|fee|sum|balance|budget|salary|cents)$/i
const currencyName = /^(?:.*_)?currency(?:_?code)?$/i
const minorUnits = /\bcents?\b|\bminor unit|smallest (?:currency )?unit/i

// amount groups the digits of a number, and adds the currency beside it. No digit is rounded.
function amount({ name, description }: Described, digits: string, beside: Json | undefined): string | undefined {
  const match = /^(-?)(\d+)(\.\d+)?$/.exec(digits)
  if (!match || !amountWords.test(name)) return undefined
  const currency = currencyIn(beside)
  const minor = minorUnits.test(`${name.replaceAll(/[_-]/g, ' ')} ${description ?? ''}`)
  let [whole, fraction] = [match[2]!.replace(/^0+(?=\d)/, ''), match[3] ?? '']
  const places = minor && !fraction ? placesOf(currency) : 0
  if (places > 0) {
    const padded = whole.padStart(places + 1, '0')
    whole = padded.slice(0, -places)
    fraction = `.${padded.slice(-places)}`
  }
  const text = `${match[1]}${whole.replaceAll(/\B(?=(?:\d{3})+$)/g, ',')}${fraction}${currency && ` ${currency}`}`
  if (text === digits) return undefined
  return places > 0 ? `${text}, if ${digits} are cents or the like` : text
}

function currencyIn(beside: Json | undefined): string {
  if (!isObject(beside)) return ''
  const found = Object.entries(beside).filter(([name]) => currencyName.test(name))
  const value = found.length === 1 ? found[0]![1] : ''
  return typeof value === 'string' && /^[A-Za-z]{3}$/.test(value) ? value.toUpperCase() : ''
}

function placesOf(currency: string): number {
  const options = new Intl.NumberFormat('en', { style: 'currency', currency: currency || 'USD' }).resolvedOptions()
  return options.maximumFractionDigits ?? 2
}

// A formatter is made once: making one costs more than all the rest of showing a value.
const formatters = new Map<string, Intl.DateTimeFormat>()

function formatter(language: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const name = language + JSON.stringify(options)
  const made = formatters.get(name) ?? new Intl.DateTimeFormat(language, options)
  formatters.set(name, made)
  return made
}

function format(at: Date, what: 'day' | 'time' | 'offset', zone: Zone): string {
  const timeZone = zone === 'UTC' ? 'UTC' : undefined
  if (what === 'offset')
    return (
      formatter('en', { timeZone, timeZoneName: 'longOffset' })
        .formatToParts(at)
        .find((part) => part.type === 'timeZoneName')
        ?.value.replace('GMT', 'UTC')
        .replace('+00:00', '') ?? ''
    )
  const day = { weekday: 'short', day: 'numeric', month: 'short', year: 'numeric' } as const
  const seconds = at.getUTCSeconds() ? ({ second: '2-digit' } as const) : {}
  const clock = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23', ...seconds } as const
  return formatter('en-GB', { timeZone, ...day, ...(what === 'time' ? clock : {}) }).format(at)
}
