// An identity provider as a form has it: texts, with lines for lists.
import type { Schemas } from '../../lib/client'
import { lines } from '../../lib/lines'

const names = [
  'issuer',
  'audience',
  'label',
  'role_claim',
  'roles',
  'default_role',
  'allowed_domains',
  'clients',
  'web_client_id',
] as const

export type Fields = Record<(typeof names)[number], string>
type Provider = Partial<Omit<Schemas['IdentityProvider'], 'provider_id'>>

const personRoles = ['viewer', 'operator', 'admin', 'owner']

// pairs reads lines of "value = role". The value may have equals signs itself.
export function pairs(text: string): { roles: Record<string, string>; problem?: string } {
  const roles: [string, string][] = []
  for (const line of lines(text)) {
    const at = line.lastIndexOf('=')
    const [value, role] = [line.slice(0, Math.max(at, 0)).trim(), line.slice(at + 1).trim()]
    if (!value || !personRoles.includes(role))
      return { roles: {}, problem: `“${line}” is not a value = viewer, operator, admin or owner.` }
    roles.push([value, role])
  }
  // A key such as __proto__ is one like any other.
  return { roles: Object.fromEntries(roles) }
}

// fieldsOf returns the form of a provider.
export function fieldsOf(one: Provider | undefined): Fields {
  const { roles = {}, allowed_domains = [], clients = [], ...rest } = one ?? {}
  return {
    issuer: rest.issuer ?? '',
    audience: rest.audience ?? '',
    label: rest.label ?? '',
    role_claim: rest.role_claim ?? '',
    default_role: rest.default_role ?? '',
    web_client_id: rest.web_client_id ?? '',
    roles: Object.entries(roles)
      .map(([value, role]) => `${value} = ${role}`)
      .join('\n'),
    allowed_domains: allowed_domains.join('\n'),
    clients: clients.join('\n'),
  }
}

// Stored is the body that is sent, without the secret.
export type Stored = { issuer: string; [name: string]: string | string[] | { [value: string]: string } }

// stored returns the body of a form, without empty fields.
export function stored(fields: Fields): Stored {
  const texts = (['audience', 'label', 'role_claim', 'default_role', 'web_client_id'] as const).flatMap((name) =>
    fields[name].trim() ? [[name, fields[name].trim()] as const] : [],
  )
  const lists = (['allowed_domains', 'clients'] as const).flatMap((name) =>
    lines(fields[name]).length ? [[name, lines(fields[name])] as const] : [],
  )
  const { roles } = pairs(fields.roles)
  return {
    issuer: fields.issuer.trim(),
    ...Object.fromEntries<string | string[]>([...texts, ...lists]),
    ...(Object.keys(roles).length > 0 && { roles }),
  }
}
