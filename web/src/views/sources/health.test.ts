import { expect, test } from 'vitest'
import { draftOf, valueFrom } from '../../form/plain'
import { type Breaker, bodyOf, checked, every, fieldsOf, formOf, fresh, health, type Source } from './health'

const source = {
  source_id: 'crm',
  kind: 'mcp',
  config: { transport: 'http', url: 'https://crm.example.org/mcp', timeout: '2m' },
  enabled: true,
  drift_guard: 'full',
  quarantine: true,
  on_lost_login: 'wait',
  listed_at: '2026-01-02T03:04:05Z',
  list_error: null,
  login: null,
  address_accepted: true,
  quarantined: false,
  quarantined_tools: 0,
} as unknown as Source

test('the gravest of a source is shown', () => {
  const open = { state: 'open' } as Breaker
  const state = (more: object, breaker?: Breaker) => health({ ...source, ...more }, breaker)[1]
  expect(state({})).toBe('listed')
  expect(state({ list_error: 'refused', quarantined: true }, open)).toBe('not listed')
  expect(state({ list_error: 'refused', enabled: false })).toBe('off')
  expect(state({ listed_at: null })).toBe('not listed yet')
  expect(state({ quarantined: true }, open)).toBe('breaker open')
  expect(state({ address_accepted: false, quarantined_tools: 2 })).toBe('address not accepted')
  expect(state({ quarantined_tools: 2 })).toBe('2 new tools')
})

test('a source that is saved as it is stays what it was, and keeps its credentials', () => {
  for (const config of [
    source.config,
    { transport: 'stdio', command: ['npx', 'notes'], dir: '/srv' },
    { url: 'https://hook.example.org' },
    { user_id: 'ana', toolkits: ['gmail'], version: '7' },
    { honours_key: true, url: 'https://gateway.example.org' },
    { organization: 'acme', url: 'https://de.sentry.io', timeout: '2m' },
    { calendars: { team: 'https://dav.example.org' }, user: 'ana' },
    { accounts: { office: { kind: 'imap', host: 'i', port: 993 } }, networks: ['10.1.0.0/16'], timeout: '5s' },
    { max_wait: '5s', http: { allow: [{ prefix: 'https://a' }] } },
  ]) {
    const kinds = {
      transport: 'mcp',
      user_id: 'composio',
      honours_key: 'tool_gateway',
      organization: 'sentry',
      calendars: 'dav',
      accounts: 'mail',
      max_wait: 'builtin',
    }
    const kind = Object.entries(kinds).find(([name]) => name in config)?.[1] ?? 'webhook'
    const form = formOf({ ...source, kind, config } as Source)
    const draft = draftOf(every, form)
    const { value, problems } = valueFrom(fieldsOf(true, draft), draft)
    expect(problems).toEqual({})
    expect(bodyOf(value)).toEqual({
      kind,
      config,
      drift_guard: 'full',
      on_lost_login: 'wait',
      ...(['mcp', 'composio', 'tool_gateway'].includes(kind) && { quarantine: true }),
      enabled: true,
    })
  }
})

test('credentials go where the kind takes them, and are never repeated in an error', () => {
  const at = { ...fresh, source_id: 'x', url: 'https://x', credentials: ['Authorization=Bearer a=b'] }
  expect(bodyOf(at)).toMatchObject({ credentials: { header: { Authorization: 'Bearer a=b' } } })
  expect(bodyOf(at)).not.toHaveProperty('source_id')
  expect(bodyOf({ kind: 'mail', config: {}, credentials: ['office=s3cret'] })).toMatchObject({
    credentials: { accounts: { office: 's3cret' } },
  })
  expect(bodyOf({ kind: 'slack', config: {}, credentials: [] })).toMatchObject({ credentials: {} })
  // Without a value, the configuration is empty.
  const blank = valueFrom(fieldsOf(true, { '/kind': 'builtin' }), { '/kind': 'builtin' }).value
  expect(bodyOf(blank)).toMatchObject({ kind: 'builtin', config: {} })
  expect(bodyOf({ kind: 'slack', config: {} })).not.toHaveProperty('credentials')
  expect(checked({ ...at, credentials: ['s3cret'] })).toEqual({ '/credentials': 'Each line is NAME=VALUE.' })
  expect(checked({ config: [], more: null })).toEqual({
    '/config': 'It is a JSON object.',
    '/more': 'It is a JSON object.',
  })
  expect(checked(at)).toEqual({})
})
