// An MCP server that keeps what it is called with, byte for byte, and the people and steps that the journeys of the
// inbox share.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from '@playwright/test'
import { fromEntries, isObject, type Json, keys, parse, stringify } from '../src/lib/json'
import { get } from '../src/lib/pointer'
import { api, test as base, expect, token, url } from './fixture'

export { another, api, login, url } from './fixture'
export { expect }

// Hand is how a journey is walked: by pointing, or by the keyboard alone.
export type Hand = 'pointer' | 'keyboard'
export const hands: readonly Hand[] = ['pointer', 'keyboard']

const text = { type: 'string' }
const schema = {
  type: 'object',
  required: ['title'],
  additionalProperties: false,
  properties: {
    title: text,
    order: { type: 'integer' },
    amount: { type: 'number' },
    note: text,
    reply_to: text,
    urgent: { type: 'boolean' },
    rows: { type: 'array', items: { type: 'array', items: { type: 'integer' } } },
    who: {
      oneOf: [
        { type: 'object', title: 'Person', required: ['kind'], properties: { kind: { const: 'person' }, name: text } },
        {
          type: 'object',
          title: 'Group',
          required: ['kind'],
          properties: { kind: { const: 'group' }, size: { type: 'integer' } },
        },
      ],
    },
  },
}
const names = [
  'keep',
  'pair',
  'wide',
  'boxed',
  'brief',
  'grouped',
  'chosen',
  'like',
  'many',
  'later',
  'lose',
  'held',
  'keys',
  'step',
  'refuse',
  'sent',
  'long',
  'make',
  'unmake',
] as const
const tools = names.map((name) => ({
  name,
  title: `Recorder ${name}`,
  description: 'Keeps what it is called with.',
  inputSchema: schema,
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false },
}))

export interface Recorder {
  source: string
  tool: (name: (typeof names)[number]) => string
  // calls are the arguments of every call: read and written again, and raw, the text that came.
  calls: { tool: string; args: string; raw: string }[]
  propose: (name: (typeof names)[number], args: string, more?: string) => Promise<string>
}

// canonical writes a value with its keys in order, so that two texts of one value are the same.
export function canonical(of: string): string {
  const sorted = (value: Json): Json =>
    Array.isArray(value)
      ? value.map(sorted)
      : isObject(value)
        ? fromEntries([...keys(value)].sort().map((key) => [key, sorted(value[key]!)] as const))
        : value
  return stringify(sorted(parse(of)))
}

// numerals returns the numbers of a JSON text as they are written there, in order of their texts. They are found
// without the page's own parser, which could lose the same digits on both sides.
export function numerals(of: string): string[] {
  return (of.replace(/"(?:[^"\\]|\\.)*"/g, '""').match(/-?\d[\d.eE+-]*/g) ?? []).sort()
}

// rawArguments cuts the arguments out of the text of a call.
function rawArguments(body: string): string {
  const tokens: string[] = body.match(/"(?:[^"\\]|\\.)*"|[{}[\]]|[^"{}[\]]+/g) ?? []
  let depth = 0
  let raw = ''
  for (const token of tokens.slice(tokens.indexOf('"arguments"') + 2)) {
    raw += token
    depth += '{['.includes(token) ? 1 : '}]'.includes(token) ? -1 : 0
    if (depth === 0) break
  }
  return raw
}

function answer(body: string, calls: Recorder['calls']): unknown {
  const request = parse(body)
  const id = get(request, '/id')
  const result = (value: unknown) => ({ jsonrpc: '2.0', id, result: value })
  switch (get(request, '/method')) {
    case 'initialize':
      return result({
        protocolVersion: '2025-06-18',
        capabilities: { tools: {} },
        serverInfo: { name: 'recorder', version: '1' },
      })
    case 'tools/list':
      return result({ tools })
    case 'ping':
      return result({})
    case 'tools/call': {
      const name = String(get(request, '/params/name'))
      calls.push({ tool: name, args: stringify(get(request, '/params/arguments')), raw: rawArguments(body) })
      if (name === 'refuse') return result({ content: [{ type: 'text', text: 'refused' }], isError: true })
      return name === 'lose' && get(request, '/params/arguments/title') !== 'Answered'
        ? undefined
        : result({ content: [{ type: 'text', text: 'kept' }] })
    }
    default:
      return { jsonrpc: '2.0', id, error: { code: -32601, message: 'method not found' } }
  }
}

function serve(calls: Recorder['calls']): Promise<Server> {
  const server = createServer((request, response) => {
    if (request.method !== 'POST') return void response.writeHead(request.method === 'DELETE' ? 200 : 405).end()
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      const body = Buffer.concat(pieces).toString('utf8')
      if (get(parse(body), '/id') === undefined) return void response.writeHead(202).end()
      const said = answer(body, calls)
      // A call that is lost ends without an answer: nobody knows whether it happened.
      if (said === undefined) return void request.socket.destroy()
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(stringify(said as Json))
    })
  })
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)))
}

// closeBreaker has the tool that loses calls answer one: after five losses in a row its circuit breaker would hold it
// back.
export async function closeBreaker(recorder: Recorder): Promise<void> {
  const id = await recorder.propose('lose', '{"title":"Answered"}')
  await api('operator', 'POST', `/api/v1/actions/${id}/approve`)
  await expect
    .poll(async () => (await api<{ phase: string }>('operator', 'GET', `/api/v1/actions/${id}`)).phase, {
      timeout: 30_000,
    })
    .toBe('completed')
}

let count = 0

async function submit(source: string, name: string, args: string, more: string): Promise<string> {
  const key = `journey-${process.pid}-${Date.now()}-${++count}`
  const answer = await fetch(`${url()}/api/v1/actions`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token('agent')}`, 'Content-Type': 'application/json', 'Idempotency-Key': key },
    body:
      `{"type":"mcp.exec","external_id":"${key}",` +
      `"tool":{"source":"${source}","name":"${name}"},"args":${args}${more}}`,
  })
  const said = await answer.text()
  if (!answer.ok) throw new Error(`propose ${name}: ${answer.status} ${said}`)
  return String(get(parse(said), '/envelope/action_id'))
}

export const test = base.extend<object, { recorder: Recorder }>({
  recorder: [
    async ({}, use, info) => {
      const calls: Recorder['calls'] = []
      const server = await serve(calls)
      const source = `recorder-${info.workerIndex}`
      await api('admin', 'PUT', '/api/v1/settings', { timezone: 'UTC', session_pending_max: 0, session_minute_max: 0 })
      await api('admin', 'PUT', `/api/v1/sources/${source}`, {
        kind: 'mcp',
        config: { transport: 'http', url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp` },
        default_risk: 'write',
      })
      await api('admin', 'POST', `/api/v1/sources/${source}/refresh`)
      await expect
        .poll(
          async () =>
            (await api<{ items: unknown[] }>('admin', 'GET', `/api/v1/tools?source=${source}&limit=100`)).items.length,
          { timeout: 30_000 },
        )
        .toBe(names.length)
      const tool = (name: string) => `${source}:${name}`
      await use({ source, tool, calls, propose: (name, args, more = '') => submit(source, name, args, more) })
      server.close()
      server.closeAllConnections()
    },
    { scope: 'worker' },
  ],
})

// person makes somebody who decides, and returns a token of theirs.
export async function person(name: string): Promise<`cs_${string}`> {
  const { operator_id } = await api<{ operator_id: string }>('owner', 'POST', '/api/v1/operators', {
    name,
    role_set: 'operator',
  })
  return (
    await api<{ token: `cs_${string}` }>('owner', 'POST', '/api/v1/tokens', { name, role: 'operator', operator_id })
  ).token
}

// look opens an action in the inbox, without loading the page anew where it is open.
export async function look(page: Page, id: string) {
  await page.goto(`${url()}/inbox/${id}`)
  await expect(page.getByRole('article')).toBeVisible()
}

// give gives a command by its key or by its button, once the button can be used.
export async function give(page: Page, hand: Hand, key: string, name: string | RegExp) {
  const button = page.getByRole('button', { name, exact: typeof name === 'string' }).last()
  await expect(button).toBeVisible()
  await expect(button).not.toHaveAttribute('aria-disabled', 'true')
  if (hand === 'pointer') return button.click()
  if (key === 'Tab') {
    await button.focus()
    return page.keyboard.press('Enter')
  }
  return page.keyboard.press(key)
}

export interface Seen {
  phase: string
  envelope: { args: Record<string, unknown>; result: { status: string } }
  decision: { note: string; etag?: string; approvals_given: number; edited?: unknown } | null
}

export const action = (id: string, as: 'agent' | 'operator' = 'operator') =>
  api<Seen>(as, 'GET', `/api/v1/actions/${id}`)
export const phase = async (id: string) => (await action(id)).phase
