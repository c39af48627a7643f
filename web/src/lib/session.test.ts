import { expect, test } from 'vitest'
import { ownPath } from './session'

test('login leads to a path of this page and nowhere else', () => {
  for (const to of [
    '//evil.example',
    '/\\evil.example',
    'https://evil.example',
    'javascript:alert(1)',
    '',
    null,
    '/a\\b',
    '/\t/evil.example',
    '/login?to=/login',
  ]) {
    expect(ownPath(to), String(to)).toBe('/inbox')
  }
  expect(ownPath('/actions/1?tab=args')).toBe('/actions/1?tab=args')
})
