import { describe, expect, test } from 'vitest'
import { fieldsOf, pairs, stored } from './provider'

describe('roles of claims', () => {
  test('are lines of value = role, and the value may have equals signs', () => {
    expect(pairs('cn=ops,dc=acme = operator\n\nÜber = viewer').roles).toEqual({
      'cn=ops,dc=acme': 'operator',
      Über: 'viewer',
    })
  })
  test('a line that is none is a problem', () => {
    for (const line of ['ops', 'ops = agent', '= admin', 'ops =']) expect(pairs(line).problem, line).toContain(line)
  })
  test('__proto__ is a value like any other', () => {
    expect(Object.keys(pairs('__proto__ = owner').roles)).toEqual(['__proto__'])
  })
})

test('a provider that is shown and saved stays the same, and its secret is no part of it', () => {
  const one = {
    issuer: 'https://login.example.com',
    audience: 'countersign-1',
    clients: ['a', 'b'],
    roles: { ops: 'operator' as const },
    web_client_id: 'web',
  }
  expect(stored(fieldsOf({ ...one, has_web_client_secret: true, etag: 'x' }))).toEqual(one)
})

test('what is empty is left out', () => {
  expect(stored(fieldsOf({ issuer: 'https://a' }))).toEqual({ issuer: 'https://a' })
})
