// How a source stands, in a state and a few words; the reasons are shown beside it.
import type { PlainField } from '../../form/plain'
import type { Schemas } from '../../lib/client'
import { isObject, type Json, type JsonObject } from '../../lib/json'

export type Source = Schemas['Source']
export type Breaker = Schemas['Breaker']

// health returns the state of a source, the gravest first.
export function health(source: Source, breaker?: Breaker): [state: string, word: string] {
  if (!source.enabled) return ['paused', 'off']
  if (source.login?.lost_at) return ['failed', 'login lost']
  if (source.list_error !== null) return ['failed', 'not listed']
  if (source.listed_at === null) return ['waiting', 'not listed yet']
  if (breaker && breaker.state !== 'closed') return ['failed', `breaker ${breaker.state}`]
  if (source.quarantined) return ['quarantine', 'quarantine']
  if (!source.address_accepted) return ['drift', 'address not accepted']
  if (Number(source.quarantined_tools) > 0) return ['quarantine', `${source.quarantined_tools} new tools`]
  return ['completed', 'listed']
}

export const kinds = [
  'mcp',
  'tool_gateway',
  'composio',
  'slack',
  'linear',
  'sentry',
  'webhook',
  'mail',
  'dav',
  'builtin',
] as const

// transports are how an MCP server is reached.
const transports = ['by its URL', 'by a command'] as const

// The form of a source is flat: its values become the body of the request in bodyOf.
const id: PlainField = {
  pointer: '/source_id',
  label: 'Id',
  kind: 'text',
  required: true,
  hint: 'Lower case, digits, dots, dashes. Tools are named after it: mail:send.',
}
const kind: PlainField = { pointer: '/kind', label: 'Kind', kind: 'choice', choices: kinds, required: true }
const transport: PlainField = { pointer: '/transport', label: 'Reached', kind: 'choice', choices: transports }
const url: PlainField = {
  pointer: '/url',
  label: 'URL',
  kind: 'text',
  required: true,
  hint: 'Without a password. Credentials have their own field.',
}
const command: PlainField = {
  pointer: '/command',
  label: 'Command',
  kind: 'lines',
  required: true,
  hint: 'The program and its arguments, one a line. It runs on the workers.',
}
const config: PlainField = { pointer: '/config', label: 'Configuration', kind: 'json', required: true }
// shapes have the fields of the configuration of kinds with few of them; of the others it is JSON.
const at = (name: string, label: string, hint: string, more: Partial<PlainField> = {}): PlainField => ({
  pointer: `/config/${name}`,
  label,
  kind: 'text',
  hint,
  ...more,
})
const required = { required: true }
const service = at('url', 'URL', 'Empty for the service itself.')
const networks = at('networks', 'Networks', 'Private ones that are allowed, one a line, such as 10.1.0.0/16.', {
  kind: 'lines',
})
const timeout = at('timeout', 'Longest call', 'Such as 30s. Empty for the usual one.')
const shapes: Partial<Record<string, readonly PlainField[]>> = {
  tool_gateway: [
    at('url', 'URL', url.hint!, required),
    at('honours_key', 'It runs a call once for each Idempotency-Key', '', { kind: 'check', absent: '' }),
  ],
  composio: [
    at('user_id', 'User', 'Whose connected accounts are used.', required),
    at('toolkits', 'Toolkits', 'Their names, one a line, such as gmail.', { kind: 'lines', ...required }),
    service,
  ],
  slack: [service],
  linear: [service],
  sentry: [at('organization', 'Organisation', 'Its name in addresses.', required), service],
  webhook: [at('url', 'URL', 'Where messages are sent.', required)],
  dav: [
    at('user', 'User', 'Of all collections.'),
    at('calendars', 'Calendars', 'Addresses by name: {"team": "https://…"}.', { kind: 'json' }),
    at('address_books', 'Address books', 'Addresses by name: {"people": "https://…"}.', { kind: 'json' }),
  ],
  mail: [
    at(
      'accounts',
      'Accounts',
      'Mailboxes by name: {"office": {"kind": "imap", "host": "…", "port": 993, "tls": "implicit", "user": "…"}}.',
      { kind: 'json', ...required },
    ),
    networks,
    timeout,
  ],
  builtin: [
    at('max_wait', 'Longest wait', 'Such as 30s. Empty for the usual one.'),
    at('http', 'HTTP requests', 'Allowed ones: {"allow": [{"prefix": "https://…", "methods": ["GET"]}]}.', {
      kind: 'json',
    }),
  ],
}
const more: PlainField = {
  pointer: '/more',
  label: 'More configuration',
  kind: 'json',
  hint: 'A JSON object, such as {"timeout": "2m"}. Optional.',
}
const credentials: PlainField = {
  pointer: '/credentials',
  label: 'Credentials',
  kind: 'lines',
  secret: true,
}
const rest: readonly PlainField[] = [
  {
    pointer: '/default_risk',
    label: 'Risk of tools that declare none',
    kind: 'choice',
    choices: ['read', 'write', 'danger'],
    absent: 'the usual one',
  },
  {
    pointer: '/drift_guard',
    label: 'Changes that need a person',
    kind: 'choice',
    choices: ['full', 'interface'],
    absent: 'the usual ones',
    hint: 'full: any change of a definition. interface: not those of texts that only describe.',
  },
  {
    pointer: '/on_lost_login',
    label: 'Calls while its login is lost',
    kind: 'choice',
    choices: ['wait', 'fail'],
    absent: 'wait',
  },
  { pointer: '/enabled', label: 'Switched on', kind: 'check' },
]
const quarantine: PlainField = {
  pointer: '/quarantine',
  label: 'Tools that appear later wait until they are accepted',
  kind: 'check',
}

// every are the fields of all kinds.
export const every: readonly PlainField[] = [
  id,
  kind,
  transport,
  url,
  command,
  config,
  ...[...new Map(Object.values(shapes).flatMap((of) => of!.map((field) => [field.pointer, field]))).values()],
  more,
  { ...credentials, none: 'Remove the stored credentials' },
  quarantine,
  ...rest,
]

// discovered are the kinds that list tools of other people.
const discovered = ['mcp', 'tool_gateway', 'composio']

const credentialNames: Partial<Record<string, string>> = {
  composio: 'api_key',
  linear: 'api_key',
  slack: 'token',
  sentry: 'token',
  webhook: 'signing_secret',
  dav: 'password',
}

// fieldsOf returns the fields of a kind of source. A stored source keeps its id.
export function fieldsOf(stored: boolean, draft: Readonly<Record<string, string>>): readonly PlainField[] {
  const { '/kind': of = '', '/transport': by } = draft
  const shape =
    of === 'mcp'
      ? [transport, by === transports[1] ? command : url, more]
      : of === ''
        ? []
        : shapes[of]
          ? [...shapes[of], more]
          : [{ ...config, hint: 'A JSON object, {} for the usual one.' }]
  const name =
    of === 'mcp'
      ? by === transports[1]
        ? 'NAME=VALUE, for its environment'
        : 'Header=VALUE'
      : of === 'mail'
        ? 'ACCOUNT=PASSWORD'
        : `${credentialNames[of] ?? 'token'}=VALUE`
  const secret: PlainField = {
    ...credentials,
    hint: `${name}, one a line. Stored encrypted and never shown.${stored ? ' Empty keeps the stored ones.' : ''}`,
    ...(stored && { none: 'Remove the stored credentials' }),
  }
  return [
    ...(stored ? [] : [id]),
    kind,
    ...shape,
    ...(of === '' ? [] : [secret, ...(discovered.includes(of) ? [quarantine] : []), ...rest]),
  ]
}

// formOf returns the value of the form for a stored source: without its credentials, which nobody reads.
export function formOf(source: Source): JsonObject {
  const { kind: of, default_risk, drift_guard, on_lost_login, quarantine, enabled } = source
  const settings = { ...(default_risk && { default_risk }), drift_guard, on_lost_login, quarantine, enabled }
  const whole = source.config as JsonObject
  if (of !== 'mcp') {
    const names = shapes[of]?.map(({ pointer }) => pointer.slice('/config/'.length)) ?? Object.keys(whole)
    const others = Object.fromEntries(Object.entries(whole).filter(([name]) => !names.includes(name)))
    const known = Object.fromEntries(Object.entries(whole).filter(([name]) => names.includes(name)))
    return { kind: of, config: known, ...(Object.keys(others).length > 0 && { more: others }), ...settings }
  }
  const { transport: by, url: at, command: program, ...others } = whole
  return {
    kind: of,
    transport: by === 'stdio' ? transports[1] : transports[0],
    ...(at !== undefined && { url: at }),
    ...(program !== undefined && { command: program }),
    ...(Object.keys(others).length > 0 && { more: others }),
    ...settings,
  }
}

// fresh is the form of a new source.
export const fresh: JsonObject = { kind: 'mcp', transport: transports[0], quarantine: true, enabled: true }

// bodyOf returns the body that stores a form.
export function bodyOf(form: JsonObject): JsonObject {
  const { kind: of, transport: by, url: at, command: program, config: whole, more: others, credentials: lines } = form
  const { source_id: _, transport: __, url: ___, command: ____, more: _____, credentials: ______, ...settings } = form
  const stdio = by === transports[1]
  const extra = isObject(others) ? others : {}
  const shape: Json =
    of === 'mcp'
      ? stdio
        ? { transport: 'stdio', command: program!, ...extra }
        : { transport: 'http', url: at!, ...extra }
      : isObject(whole)
        ? { ...whole, ...extra }
        : (whole ?? extra)
  const place = of === 'mcp' ? (stdio ? 'env' : 'header') : of === 'mail' ? 'accounts' : 'values'
  return {
    ...settings,
    config: shape,
    ...(Array.isArray(lines) && { credentials: secretsOf(place, lines.map(String)) }),
  }
}

// checked returns the problems of a form, by pointer. A line of the credentials is a secret: it is not repeated.
export function checked({ credentials: lines, config: whole, more: others }: JsonObject): Record<string, string> {
  return {
    ...(Array.isArray(lines) &&
      lines.some((line) => String(line).indexOf('=') < 1) && { '/credentials': 'Each line is NAME=VALUE.' }),
    ...(whole !== undefined && !isObject(whole) && { '/config': 'It is a JSON object.' }),
    ...(others !== undefined && !isObject(others) && { '/more': 'It is a JSON object.' }),
  }
}

// secretsOf returns credentials of lines; of none it removes the stored ones.
function secretsOf(place: string, lines: readonly string[]): JsonObject {
  if (lines.length === 0) return {}
  return {
    [place]: Object.fromEntries(
      lines.map((line) => {
        const at = line.indexOf('=')
        return [line.slice(0, at).trim(), line.slice(at + 1)]
      }),
    ),
  }
}
