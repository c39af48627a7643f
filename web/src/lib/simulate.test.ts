import { expect, test } from 'vitest'
import { add, type Difference, type Flow, mostListed, nothing } from './simulate'

const flow = (now: Flow['now'], changed: Flow['changed'], count: number) => ({
  tool: 'a:b',
  // biome-ignore lint/suspicious/noThenProperty: the name is the API's
  then: now,
  now,
  changed,
  count,
  now_approvals: undefined as number | undefined,
  changed_approvals: undefined as number | undefined,
})
const page = (counts: ReturnType<typeof flow>[], config_version = 7, differences: Difference[] = []) => ({
  config_version,
  examined: 100,
  compared: 90,
  without_tool: 1,
  counts,
  differences,
  next_cursor: null,
})
const difference = (id: number, changed: Flow['changed']) =>
  ({
    action_id: String(id),
    proposed_at: '2026-01-02T03:04:05Z',
    tool: 'a:b',
    // biome-ignore lint/suspicious/noThenProperty: the name is the API's
    then: { mode: 'deny', source: '' },
    now: { mode: 'allow', source: '' },
    changed: { mode: changed, source: '' },
    causes: [],
  }) as Difference

test('pages add up, over all tools, with the changed ones first', () => {
  const one = add(nothing, page([flow('allow', 'allow', 80), flow('allow', 'deny', 2)]))
  const two = add(one, page([{ ...flow('allow', 'deny', 3), tool: 'c:d' }]))
  expect(two).toMatchObject({ examined: 200, compared: 180, withoutTool: 2, changed: 5, moved: false })
  expect(two.flows.map(({ changed, count }) => [changed, count])).toEqual([
    ['deny', 5],
    ['allow', 80],
  ])
  expect(one.flows).toHaveLength(2)
  expect(one.flows[0]!.count).toBe(2)
})

test('another number of approvals is a change, without another mode', () => {
  const same = flow('require_approval', 'require_approval', 4)
  const totals = add(nothing, page([same, { ...same, count: 3, changed_approvals: 2 }]))
  expect(totals).toMatchObject({ changed: 3 })
  expect(totals.flows.map(({ count }) => count)).toEqual([3, 4])
})

test('a policy that changed meanwhile shows', () => {
  expect(add(add(nothing, page([], 7)), page([], 8)).moved).toBe(true)
})

test('an action that differs from the past alone is not listed, and the list is bounded', () => {
  const many = Array.from({ length: mostListed + 1 }, (_, id) => difference(id, 'deny'))
  const totals = add(nothing, page([], 7, [difference(-1, 'allow'), ...many]))
  expect(totals.differences).toHaveLength(mostListed)
  expect(totals.differences[0]!.action_id).toBe('0')
})
