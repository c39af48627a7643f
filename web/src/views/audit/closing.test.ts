import { expect, test } from 'vitest'
import { closingOf } from './closing'

test('a part of an export has its last line', async () => {
  const end = '{"end":true,"events":2,"next_cursor":"812-4711","head":null}\n'
  const long = `{"items":"${'é'.repeat(5_000)}"}\n`
  expect(await closingOf(new Blob([long, end]))).toMatchObject({ events: 2, next_cursor: '812-4711' })
  for (const cut of ['', long, '{"end":tr', long.slice(0, 100)])
    await expect(closingOf(new Blob([cut]))).rejects.toThrow()
})
