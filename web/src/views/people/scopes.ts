// The scopes of tokens, and the purpose of each.
import type { Schemas } from '../../lib/client'

export type Role = Schemas['Role']
export type Scope = Schemas['TokenScopes'][number]

// roles are in order: each has the rights of those before it, except that viewers propose nothing.
export const roles: readonly Role[] = ['agent', 'viewer', 'operator', 'admin', 'owner']

interface ScopeRow {
  scope: Scope
  text: string
  // from is the first role with an operation of the scope.
  from: Role
}

export const scopes: readonly ScopeRow[] = [
  { scope: 'actions:propose', text: 'propose calls and workflows', from: 'agent' },
  { scope: 'actions:read', text: 'read actions, the inbox and events', from: 'agent' },
  { scope: 'approvals:decide', text: 'approve, deny and edit', from: 'operator' },
  { scope: 'audit:read', text: 'read and verify the audit log', from: 'viewer' },
  { scope: 'audit:write', text: 'set retention, record heads', from: 'operator' },
  { scope: 'catalog:read', text: 'read sources and tools', from: 'agent' },
  { scope: 'catalog:write', text: 'set up sources and tools', from: 'operator' },
  { scope: 'contacts:read', text: 'read the do-not-contact list', from: 'viewer' },
  { scope: 'contacts:write', text: 'change the do-not-contact list', from: 'operator' },
  { scope: 'database:recover', text: 'release a held database', from: 'admin' },
  { scope: 'dead_letters:manage', text: 'replay, discard and resolve dead letters', from: 'operator' },
  { scope: 'dead_letters:read', text: 'read dead letters', from: 'viewer' },
  { scope: 'limits:read', text: 'read limits and settings', from: 'agent' },
  { scope: 'limits:write', text: 'change limits and settings', from: 'operator' },
  { scope: 'mail:read', text: 'read mail of triage', from: 'operator' },
  { scope: 'operators:manage', text: 'manage people and identity providers', from: 'admin' },
  { scope: 'pauses:write', text: 'pause, kill and resume', from: 'operator' },
  { scope: 'policy:read', text: 'read the policy', from: 'agent' },
  { scope: 'policy:write', text: 'change the policy', from: 'operator' },
  { scope: 'subscriptions:read', text: 'read subscriptions', from: 'viewer' },
  { scope: 'subscriptions:write', text: 'change subscriptions', from: 'admin' },
  { scope: 'tokens:manage', text: 'manage tokens', from: 'admin' },
  { scope: 'triage:manage', text: 'set up and run triage', from: 'operator' },
  { scope: 'triage:read', text: 'read the state of triage', from: 'viewer' },
]

// scopesOf returns the scopes that mean something for a role.
export function scopesOf(role: Role): readonly ScopeRow[] {
  return scopes.filter(
    ({ scope, from }) =>
      roles.indexOf(from) <= roles.indexOf(role) && !(role === 'viewer' && scope === 'actions:propose'),
  )
}

// rolesOf returns the roles whose tokens a role makes: owners every one, administrators those below their own.
export const rolesOf = (own: string): readonly Role[] =>
  own === 'owner' ? roles : own === 'admin' ? ['agent', 'viewer', 'operator'] : []

// personRolesOf returns the roles of people whom a role manages.
export const personRolesOf = (own: string): readonly Role[] => rolesOf(own).filter((role) => role !== 'agent')

type Token = Pick<
  Schemas['Token'],
  'scopes' | 'tools' | 'session_id' | 'automations' | 'employees' | 'sessions' | 'external_id_prefix'
>

// purpose returns the scopes and tools of a token, in words.
export function purpose(token: Token): string[] {
  const list = (name: string, values: readonly string[] | undefined) => (values ? [`${name} ${values.join(', ')}`] : [])
  return [
    ...list('scopes', token.scopes),
    ...list('tools', token.tools),
    ...list('session', token.session_id === undefined ? undefined : [token.session_id]),
    ...list('automations', token.automations),
    ...list('employees', token.employees),
    ...list('sessions', token.sessions),
    ...list('ids from', token.external_id_prefix === undefined ? undefined : [token.external_id_prefix]),
  ]
}

// stateOf returns whether a token is valid, and why not.
export function stateOf(
  token: Pick<Schemas['Token'], 'revoked_at' | 'expires_at'>,
  now: number,
): 'valid' | 'revoked' | 'expired' {
  if (token.revoked_at) return 'revoked'
  return token.expires_at !== null && Date.parse(token.expires_at) <= now ? 'expired' : 'valid'
}
