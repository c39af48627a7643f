import { describe, expect, test } from 'vitest'
import { longest, mostSaved, readSaved, withView } from './saved'

const view = (name: string, path = '/actions?phase=failed') => ({ name, path })

describe('stored views', () => {
  test('are read as they were written', () => {
    const views = [view('Fehlschläge'), view('失敗', '/inbox?risk=high')]
    expect(readSaved(JSON.stringify(views))).toEqual(views)
  })
  test.each([
    null,
    '',
    '{',
    '{}',
    '[null]',
    '[{"name":1,"path":"/inbox"}]',
    JSON.stringify([view('evil', '//evil.example')]),
    JSON.stringify([view('evil', 'javascript:alert(1)')]),
    JSON.stringify([view('evil', '/\\evil.example')]),
    JSON.stringify([view('')]),
    JSON.stringify([view('x'.repeat(longest + 1))]),
  ])('%s has none', (text) => expect(readSaved(text)).toEqual([]))
  test('are no more than are kept', () => {
    const many = Array.from({ length: mostSaved + 5 }, (_, i) => view(`v${i}`))
    expect(readSaved(JSON.stringify(many))).toHaveLength(mostSaved)
  })
})

describe('a view that is saved', () => {
  test('replaces the one of its name', () => {
    expect(withView([view('a')], view('a', '/inbox'))).toEqual([view('a', '/inbox')])
  })
  test('has no room where there are as many as are kept', () => {
    const full = Array.from({ length: mostSaved }, (_, i) => view(`v${i}`))
    expect(withView(full, view('new'))).toMatch(/Remove one/)
    expect(withView(full, view('v3'))).toHaveLength(mostSaved)
  })
})
