import { expect, test } from 'vitest'
import { type Diff, grouped, standing } from './drift'
import { toolAt, toolHref } from './names'

const change = (pointer: string, strength: 'text' | 'interface', more: object = {}): Diff['changes'][number] => ({
  pointer,
  strength,
  hidden_characters: false,
  ...more,
})

test('changes of the interface come before those of the text, each in the order given', () => {
  const found = grouped([
    change('/description', 'text', { was: 'a', now: 'b', hidden_characters: true }),
    change('/input_schema/properties/to/type', 'interface', { was: 'string', now: 'array' }),
    change('/title', 'text'),
    change('/input_schema/required', 'interface'),
  ])
  expect(found.map((g) => [g.strength, g.changes.map((c) => c.pointer)])).toEqual([
    ['interface', ['/input_schema/properties/to/type', '/input_schema/required']],
    ['text', ['/description', '/title']],
  ])
  expect(found[1]!.changes[0]).toEqual({ pointer: '/description', was: 'a', now: 'b', hidden: true })
})

test('a strength without changes has no group', () => {
  expect(grouped([])).toEqual([])
  expect(grouped([change('/title', 'text')]).map((g) => g.strength)).toEqual(['text'])
})

test('a tool is new, changed, or held by its source', () => {
  expect(standing({ drift: 'none', drifted: false, quarantined: false })).toBe('fine')
  expect(standing({ drift: 'none', drifted: true, quarantined: false })).toBe('source')
  expect(standing({ drift: 'none', drifted: false, quarantined: true })).toBe('source')
  expect(standing({ drift: 'interface', drifted: true, quarantined: true })).toBe('new')
  // Below the guard "interface" a changed text is no drift, and can be accepted all the same.
  expect(standing({ drift: 'text', drifted: false, quarantined: false })).toBe('changed')
})

test('an address leads back to its tool, whatever its name has', () => {
  for (const tool of ['mail:send', 'crm:a/b c', 'x:100%', 'x:%2F', 'x:ü?#&', 'x:..'])
    expect(toolAt(new URL(toolHref(tool), 'http://x').pathname)).toBe(tool)
  expect(toolAt('/tools')).toBe('')
  expect(toolAt('/tools/%')).toBe('')
})
