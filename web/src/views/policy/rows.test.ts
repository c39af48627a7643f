import { expect, test } from 'vitest'
import { changed, covers, type ModeRule, modePath, narrowing, rowsOf, type Tool } from './rows'

const tool = (name: string, trace: Tool['trace'] = []): Tool => ({
  tool: name,
  title: '',
  risk: 'write',
  mode: 'allow',
  mode_source: 'org_default',
  trace,
  rules: 0,
  reviews: 0,
  grants: 0,
})
const mode = (of: string, to: ModeRule['mode'], automation = '') =>
  ({ tool: of, mode: to, automation_id: automation, etag: of }) as ModeRule
const keys = (tools: readonly Tool[], modes: readonly ModeRule[], all: boolean) =>
  rowsOf(
    tools.map((one) => ({ tool: one, page: 0 })),
    modes,
    all,
  ).map(({ key }) => key)

test('a pattern covers a tool', () => {
  for (const pattern of ['*', 'shop:*', '*:a:b', 'shop:a:b', '*:*']) expect(covers(pattern, 'shop:a:b')).toBe(true)
  for (const pattern of ['shop:a', 'mail:*', '*:b', 'sho:*', 'shop', 'shop:a:bc'])
    expect(covers(pattern, 'shop:a:b')).toBe(false)
})

test('tools stand below the patterns that cover them', () => {
  const tools = [tool('mail:read'), tool('mail:send'), tool('shop:a:b')]
  const modes = [
    mode('*', 'deny'),
    mode('*:*', 'deny'),
    mode('*:send', 'allow'),
    mode('gone:x', 'deny'),
    mode('mail:*', 'allow'),
  ]
  const listed = ['*', '*:send', 'mail:*', 'mail:read', 'mail:send', 'shop:*', 'shop:a:b']
  expect(keys(tools, modes, false)).toEqual(listed)
  expect(keys(tools, modes, true)).toEqual([...listed, 'gone:x'])
})

test('a change replaces the mode of one pattern and one automation', () => {
  const modes = [mode('mail:*', 'allow'), mode('mail:*', 'deny', 'nightly')]
  expect(changed(modes, 'mail:*', 'nightly', 'require_approval')).toEqual([
    { tool: 'mail:*', mode: 'allow' },
    { tool: 'mail:*', mode: 'require_approval', automation_id: 'nightly' },
  ])
  expect(changed(modes, 'mail:*', '', null)).toEqual([{ tool: 'mail:*', mode: 'deny', automation_id: 'nightly' }])
  expect(changed(modes, 'mail:read', '', 'deny')).toHaveLength(3)
})

test('only layers with a mode beside the base narrow', () => {
  const row = tool('a:b', [
    { layer: 'org_default', said: 'allow' },
    { layer: 'trust', detail: 'trusted with high' },
    { layer: 'quarantine', said: 'deny' },
  ])
  expect(narrowing(row).map(({ layer }) => layer)).toEqual(['quarantine'])
})

test('a path keeps what a name has', () => {
  expect(modePath('a:b/c?', 'x&y')).toBe('/api/v1/policy/modes/a%3Ab%2Fc%3F?automation_id=x%26y')
})
