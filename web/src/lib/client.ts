// Requests to the API, with the cookie of the browser's session.
import type { components } from '../api'
import { type Json, parseAnswer, stringify } from './json'

export type Schemas = components['schemas']

// withoutCommands returns a sentence of the API without the commands of a terminal that it names as remedies: the page
// has buttons for these.
export const withoutCommands = (text: string) =>
  text
    .replace(/\s*\((?:[^()]*: )?countersign [^)]*\)/g, '')
    .replace(/(?:[;,] [^;:,.]*)?: countersign [^;.]*/g, (found) => /^[;,] [^:]*/.exec(found)?.[0] ?? '')
    .replace(/; countersign [^;.]*/g, '')

// Problem is an answer of the API that is an error (RFC 9457).
export class Problem extends Error {
  readonly status: number
  readonly code: string
  readonly detail: string
  readonly requestID: string
  readonly errors: { pointer: string; rule: string; message: string }[]
  readonly retryAfter: number | undefined

  constructor(status: number, body: Record<string, unknown>, headers: Headers) {
    super(withoutCommands(String(body.title ?? `HTTP ${status}`)))
    this.status = status
    this.code = String(body.code ?? '')
    this.detail = withoutCommands(String(body.detail ?? ''))
    this.requestID = headers.get('X-Request-Id') ?? ''
    this.errors = (Array.isArray(body.errors) ? (body.errors as Problem['errors']) : []).map((one) => ({
      ...one,
      message: withoutCommands(one.message),
    }))
    const after = Number(headers.get('Retry-After'))
    this.retryAfter = Number.isFinite(after) && after > 0 ? after : undefined
  }
}

// Answer is what the API answered. Numbers are exact (lib/json).
export interface Answer<T> {
  body: T
  etag: string
  headers: Headers
}

type Query = Record<string, string | number | boolean | readonly string[] | undefined>

export interface Options {
  query?: Query
  body?: unknown
  // csv is a body of that media type.
  csv?: string
  // ifMatch is the ETag that a change is based on, with its quotes; '*' is for a creation, which is refused where
  // something is stored (If-None-Match).
  ifMatch?: string | undefined
  signal?: AbortSignal | undefined
  // outlives has the browser send the request also where the page is closed meanwhile. Browsers allow that for short
  // bodies.
  outlives?: boolean
}

// mostOutlives is how long a body may be that outlives the page: four at once, of any characters, are below the 64 KiB
// that browsers allow.
const mostOutlives = 5_000

// path returns a path with its query. A list is the same name several times; undefined and '' are left out.
export function path(to: string, query: Query = {}): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === '') continue
    for (const one of Array.isArray(value) ? value : [value]) search.append(name, String(one))
  }
  const text = search.toString()
  return text ? `${to}?${text}` : to
}

// early returns the answers to requests that public/start.js sent before this script was loaded, by their paths.
const early = () => (globalThis as { early?: Map<string, Promise<Response>> }).early

// taken returns an early answer, once.
function taken(at: string): Promise<Response> | undefined {
  const answer = early()?.get(at)
  early()?.delete(at)
  return answer
}

// wasEarly reports whether start.js asked for a path, and nobody took the answer.
export const wasEarly = (at: string) => early()?.has(at) ?? false

// forgetEarly drops the early answers that nobody took: they may be older than the stream of events.
export const forgetEarly = () => early()?.clear()

// request sends a request and returns the answer, or throws a Problem. A network error is thrown as fetch throws it.
export async function request<T>(method: string, to: string, options: Options = {}): Promise<Answer<T>> {
  const headers = new Headers({ Accept: 'application/json' })
  if (options.body !== undefined) headers.set('Content-Type', 'application/json')
  if (options.ifMatch) headers.set(options.ifMatch === '*' ? 'If-None-Match' : 'If-Match', options.ifMatch)
  if (options.csv !== undefined) headers.set('Content-Type', 'text/csv')
  const sent = options.csv ?? (options.body === undefined ? undefined : stringify(options.body as Json))
  const at = path(to, options.query)
  const answer = await ((method === 'GET' && taken(at)) ||
    fetch(at, {
      method,
      headers,
      body: sent,
      keepalive: options.outlives && (sent?.length ?? 0) <= mostOutlives,
      signal: options.signal,
      redirect: 'error',
    }))
  const text = await answer.text()
  const isJSON = /[/+]json\b/.test(answer.headers.get('Content-Type') ?? '')
  const body = isJSON && text ? parseAnswer(text) : {}
  if (!answer.ok) throw new Problem(answer.status, body as Record<string, unknown>, answer.headers)
  return { body: body as T, etag: answer.headers.get('ETag') ?? '', headers: answer.headers }
}

export const get = <T>(to: string, query?: Query, signal?: AbortSignal) =>
  request<T>('GET', to, { query, signal }).then((a) => a.body)
export const post = <T>(to: string, body?: unknown, ifMatch?: string) =>
  request<T>('POST', to, { body, ifMatch }).then((a) => a.body)
