import { expect, test } from 'vitest'
import { pages } from './pages'

const read =
  (answers: Record<string, { items: number[]; next_cursor: string | null }>) =>
  async (_: string, query = {}) =>
    answers[String((query as { cursor?: string }).cursor ?? '')]!

async function rows(answers: Parameters<typeof read>[0]) {
  const found: number[] = []
  for await (const page of pages<number>('/list', {}, undefined, read(answers))) found.push(...page)
  return found
}

test('a list is read to its end, over pages that are empty', async () => {
  const answers = {
    '': { items: [1, 2], next_cursor: 'a' },
    a: { items: [], next_cursor: 'b' },
    b: { items: [3], next_cursor: null },
  }
  expect(await rows(answers)).toEqual([1, 2, 3])
})

test('a cursor that leads to itself ends the reading', async () => {
  const answers = { '': { items: [1], next_cursor: 'a' }, a: { items: [2], next_cursor: 'a' } }
  await expect(rows(answers)).rejects.toThrow('no end')
})
