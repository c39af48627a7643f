import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { lines } from '../../lib/lines'
import { personRolesOf, purpose, type Role, roles, rolesOf, scopes, scopesOf, stateOf } from './scopes'

// granted returns the roles that the API's document names for each scope.
function granted(): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>()
  let named: string[] = []
  for (const line of readFileSync('../schemas/openapi.yaml', 'utf8').split('\n')) {
    const given = /^ +x-roles: \[(.*)\]/.exec(line)
    if (given) named = given[1]!.split(/, */)
    const scope = /^ +x-scope: ['"]?([\w:]+)/.exec(line)?.[1]
    if (scope) found.set(scope, new Set([...(found.get(scope) ?? []), ...named]))
  }
  return found
}

describe('scopes', () => {
  test('are those of the API’s document, each from its first role', () => {
    const api = granted()
    expect(api.size).toBeGreaterThan(20)
    expect(scopes.map((one) => one.scope).toSorted()).toEqual([...api.keys()].toSorted())
    for (const { scope, from } of scopes)
      expect([scope, from]).toEqual([scope, roles.find((r) => api.get(scope)!.has(r))])
  })
  test('of a role are those of its operations', () => {
    const api = granted()
    for (const role of roles)
      expect(
        scopesOf(role)
          .map((one) => one.scope)
          .toSorted(),
      ).toEqual([...api.keys()].filter((scope) => api.get(scope)!.has(role)).toSorted())
  })
})

describe('roles', () => {
  test('nobody hands out more than administrators have, but owners', () => {
    expect(rolesOf('admin')).not.toContain('admin')
    expect(rolesOf('owner')).toContain('owner')
    for (const role of ['operator', 'viewer', 'agent', 'nobody']) expect(rolesOf(role)).toEqual([])
  })
  test('no person is an agent', () => {
    for (const role of ['admin', 'owner']) expect(personRolesOf(role)).not.toContain('agent' satisfies Role)
  })
})

describe('a token', () => {
  test('is for all of its role where nothing narrows it', () => expect(purpose({})).toEqual([]))
  test('is for what it is narrowed to', () => {
    expect(purpose({ scopes: ['actions:read'], tools: ['mail:*', 'crm:*'], session_id: 'inbox' })).toEqual([
      'scopes actions:read',
      'tools mail:*, crm:*',
      'session inbox',
    ])
  })
  test('ends by being revoked before it expires', () => {
    const expires_at = '2026-01-02T00:00:00Z'
    const at = Date.parse(expires_at)
    expect(stateOf({ expires_at }, at - 1)).toBe('valid')
    expect(stateOf({ expires_at }, at)).toBe('expired')
    expect(stateOf({ expires_at, revoked_at: expires_at }, at)).toBe('revoked')
    expect(stateOf({ expires_at: null }, at)).toBe('valid')
  })
})

test('lines are trimmed, and each is there once', () => {
  expect(lines(' mail:*\n\n mail:*\r\nÜber:*')).toEqual(['mail:*', 'Über:*'])
})
