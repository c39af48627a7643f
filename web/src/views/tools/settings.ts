// The settings of a tool, as the parts that the API writes one by one.
import type { PlainField } from '../../form/plain'
import type { Version } from '../../lib/change'
import { Problem, type Schemas } from '../../lib/client'
import { isObject, type Json, type JsonObject, same } from '../../lib/json'
import { get } from '../../lib/pointer'

type Tool = Schemas['Tool']

// Part is a group of settings that is written at once.
export interface Part {
  path: 'overrides' | 'description' | 'rule'
  fields: readonly PlainField[]
  // of returns the stored value.
  of: (tool: Tool) => JsonObject
}

const configured =
  (...names: (keyof Tool['configured'])[]) =>
  (tool: Tool): JsonObject =>
    Object.fromEntries(
      names.flatMap((name) => {
        const value = tool.configured[name] as Json | undefined
        return value === undefined ? [] : [[name, value]]
      }),
    )

export const overrides: Part = {
  path: 'overrides',
  fields: [
    {
      pointer: '/risk',
      label: 'Risk',
      kind: 'choice',
      choices: ['read', 'write', 'danger'],
      absent: 'as the source declares',
    },
    {
      pointer: '/effect',
      label: 'Effect of a second call',
      kind: 'choice',
      choices: ['read', 'idempotent', 'keyed', 'once'],
      absent: 'as the source declares',
      hint: 'It decides about retries: an unknown outcome of “once” is for a person.',
    },
    { pointer: '/max_attempts', label: 'Attempts', kind: 'number', hint: 'At most 100. Empty for the default.' },
  ],
  of: configured('risk', 'effect', 'max_attempts'),
}

export const description: Part = {
  path: 'description',
  fields: [
    {
      pointer: '/headline',
      label: 'Headline',
      kind: 'text',
      hint:
        'One line about a call, with {/pointer} for an argument. A call with a recipient, an amount or a destination ' +
        'that it leaves out shows the inferred headline. A change of the definition ends it.',
    },
    { pointer: '/module', label: 'Module', kind: 'text', hint: 'First word of the full name. Empty to infer it.' },
    { pointer: '/entity', label: 'Entity', kind: 'text', hint: 'Second word: the thing that a call acts on.' },
    { pointer: '/action', label: 'Action', kind: 'text', hint: 'Third word: the verb.' },
    {
      pointer: '/side_effects',
      label: 'Side effects',
      kind: 'lines',
      hint: 'One a line, each in a few words. Empty to infer them.',
      none: 'A call changes nothing',
    },
    {
      pointer: '/reversal/tool',
      label: 'Reverted by',
      kind: 'text',
      hint: 'A tool, as source:name. Empty for the reversal that the tool comes with.',
    },
    {
      pointer: '/reversal/args',
      label: 'Arguments of the reversal',
      kind: 'json',
      hint: 'A JSON object. The text $inputs/to or $outputs/id stands for a part of the call or of its answer.',
    },
  ],
  of: configured('headline', 'module', 'entity', 'action', 'side_effects', 'reversal'),
}

export const rule: Part = {
  path: 'rule',
  fields: [
    {
      pointer: '/recipients',
      label: 'Recipients',
      kind: 'lines',
      hint: 'JSON pointers to them, one a line, such as /to/*. Empty to guess them from the schema.',
      none: 'It writes to nobody',
    },
    { pointer: '/scopes', label: 'Scopes', kind: 'lines', hint: 'That an employee needs, one a line.' },
    { pointer: '/timeout', label: 'Time limit', kind: 'text', hint: 'Of a call without an answer, such as 30s.' },
    { pointer: '/retry/max_attempts', label: 'Attempts', kind: 'number', hint: 'Before that of the overrides.' },
    { pointer: '/retry/base', label: 'First pause', kind: 'text', hint: 'Before a retry, such as 2s.' },
    { pointer: '/retry/cap', label: 'Longest pause', kind: 'text', hint: 'Between retries, such as 10m.' },
    { pointer: '/retry/jitter', label: 'Jitter', kind: 'number', hint: 'Random share of a pause, 0 to 1.' },
  ],
  of: (tool) => ({
    ...(tool.recipients_confirmed && { recipients: tool.recipients }),
    ...(tool.scopes.length > 0 && { scopes: tool.scopes }),
    ...(isObject(tool.retry) && Object.keys(tool.retry).length > 0 && { retry: tool.retry as JsonObject }),
    ...(tool.timeout && { timeout: tool.timeout }),
  }),
}

export const fieldsOfSnapshot: readonly PlainField[] = [
  {
    pointer: '/read',
    label: 'Reading tool',
    kind: 'text',
    required: true,
    hint: 'Of the same source, as source:name. It only reads, and policy allows it.',
  },
  { pointer: '/args', label: 'Its arguments', kind: 'json', hint: 'A JSON object, with $inputs/id for an argument.' },
  { pointer: '/required', label: 'Do not call unless the read before it worked', kind: 'check', absent: '' },
]

export const fieldsOfReconcile: readonly PlainField[] = [
  fieldsOfSnapshot[0]!,
  {
    pointer: '/args',
    label: 'Its arguments',
    kind: 'json',
    hint: 'A JSON object, with $inputs/id for an argument and $key for the idempotency key.',
  },
  {
    pointer: '/happened',
    label: 'It happened if',
    kind: 'text',
    required: true,
    hint: 'A JSON pointer into the answer. A value there means that the call happened; false or empty that it did not.',
  },
  { pointer: '/resend', label: 'Run a call again that did not happen', kind: 'check', absent: '' },
]

// partly writes a part of an object whose ETag covers more than the part. Where the part is what it was, a change of
// another part is no collision: the write is sent again, once, with the present ETag.
export async function partly<T extends Json>(
  was: T | null,
  ifMatch: string | undefined,
  read: () => Promise<Version<T>>,
  write: (ifMatch: string | undefined) => Promise<unknown>,
): Promise<unknown> {
  try {
    return await write(ifMatch)
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 412) throw error
    const now = await read()
    if (!same(now.value ?? undefined, was ?? undefined)) throw error
    return write(`"${now.etag}"`)
  }
}

// Preview is a headline over arguments, and the pointers that the schema does not have.
export interface Preview {
  text: string
  unknown: string[]
}

// preview fills a headline's template with arguments, or with the names of those that are empty.
export function preview(template: string, schema: Json, args: Json): Preview {
  const unknown: string[] = []
  const text = template.replace(/\{(\/[^{}]*)\}/g, (_, pointer: string) => {
    if (!described(schema, pointer)) unknown.push(pointer)
    const value = get(args, pointer)
    if (value === undefined || value === null || typeof value === 'object' || value === '' || value === 0)
      return `‹${pointer.slice(1)}›`
    return String(value)
  })
  return { text, unknown }
}

// described reports whether a schema describes what is at a pointer. A schema of another form may.
function described(schema: Json, pointer: string): boolean {
  let at: Json | undefined = schema
  for (const name of pointer.slice(1).split('/')) {
    if (!isObject(at)) return true
    if (isObject(at.properties) && Object.hasOwn(at.properties, name)) at = at.properties[name]
    else if (at.type === 'array' && /^(?:\*|\d+)$/.test(name)) at = at.items
    else return at.properties === undefined && at.type !== 'array'
  }
  return true
}
