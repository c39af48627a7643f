import { expect, test } from 'vitest'
import { readFilter } from '../lib/filter'
import { fields } from '../views/actions/fields'
import { whereIs } from './found'

test('what the palette finds leads to a view, or to a list with a filter that the list has', () => {
  const id = '019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b'
  for (const kind of ['tool', 'source', 'session', 'automation', 'employee'] as const) {
    const [path, search = ''] = whereIs({ kind, id, label: '' }).split('?')
    const { filter, problems } = readFilter(fields, search)
    expect([path, problems, Object.values(filter)], kind).toEqual(['/actions', [], [id]])
  }
  expect(whereIs({ kind: 'dead_letter', id, label: '' })).toBe(`/dead-letters/${id}`)
  expect(whereIs({ kind: 'bucket', id, label: '' })).toBe('')
})
