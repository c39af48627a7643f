import { expect, test, vi } from 'vitest'
import { forgetEarly, get, withoutCommands } from './client'

test.each([
  [
    'it is completed, and has not been sent; undo it instead (countersign undo)',
    'it is completed, and has not been sent; undo it instead',
  ],
  [
    'its reversal x failed: replay it (countersign dlq replay), or discard it and revert again',
    'its reversal x failed: replay it, or discard it and revert again',
  ],
  [
    'the login of the source is lost; log in again: countersign source login',
    'the login of the source is lost; log in again',
  ],
  [
    'the token is for /mcp alone; make one for the API: countersign token create',
    'the token is for /mcp alone; make one for the API',
  ],
  [
    'only an administrator can lift the pause of everything: countersign resume --everything',
    'only an administrator can lift the pause of everything',
  ],
  [
    'the catalog declares no reversal for a:b; countersign tools describe a:b --reverse-by declares it',
    'the catalog declares no reversal for a:b',
  ],
  [
    'the database is not migrated; run `countersign migrate`',
    'the database is not migrated; run `countersign migrate`',
  ],
  ['The tool countersign.noop was refused (by countersign)', 'The tool countersign.noop was refused (by countersign)'],
  ['', ''],
])('a remedy for a terminal is left out of %s', (text, shown) => {
  expect(withoutCommands(text)).toBe(shown)
})

test('an answer that was asked for early is taken once, and not after it was forgotten', async () => {
  const answer = (text: string) => new Response(`"${text}"`, { headers: { 'Content-Type': 'application/json' } })
  const early = new Map([
    ['/one', Promise.resolve(answer('early'))],
    ['/two', Promise.resolve(answer('early'))],
  ])
  vi.stubGlobal('early', early)
  vi.stubGlobal('fetch', () => Promise.resolve(answer('late')))
  try {
    expect([await get('/one'), await get('/one')]).toEqual(['early', 'late'])
    forgetEarly()
    expect(await get('/two')).toBe('late')
  } finally {
    vi.unstubAllGlobals()
  }
})
