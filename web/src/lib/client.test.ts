import { expect, test } from 'vitest'
import { withoutCommands } from './client'

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
