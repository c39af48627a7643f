import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Item } from './items'
import { begun, compare, due, extended, type Loaded, type Page, withPage } from './loaded'

const risks = ['low', 'medium', 'high'] as const
const orders = [undefined, 'oldest', 'newest', 'expiry', 'risk'] as const

const item = (n: number) =>
  ({
    action_id: `019a0000-0000-7000-8000-${String(n).padStart(12, '0')}`,
    risk: risks[n % 3]!,
    tool: 'mail:send',
    recipients: [],
    expires_at: n % 4 === 0 ? null : `2026-11-22T10:${String((n * 7) % 60).padStart(2, '0')}:00Z`,
  }) as unknown as Item

// Server answers pages of what waits, in an order, each behind a place that is fixed.
class Server {
  waiting = new Set<number>()
  constructor(
    readonly order: string | undefined,
    readonly size: number,
  ) {}

  all = () => [...this.waiting].map(item).toSorted((a, b) => compare(this.order, a, b))

  page(cursor: string): Page {
    const behind = this.all().filter((one) => !cursor || compare(this.order, one, item(Number(cursor))) > 0)
    const items = behind.slice(0, this.size)
    return { items, next_cursor: behind.length > this.size ? String(Number(items.at(-1)!.action_id.slice(-12))) : null }
  }
}

const settled = (server: Server, loaded: Loaded, clock: () => number) => {
  for (let start = due(loaded); start; start = due(loaded))
    loaded = withPage(loaded, start, server.page(start.cursor), clock())
  return loaded
}

test('after any changes, a round of pages leaves the waiting items in order and without gaps', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('more' as const) }),
    fc.record({ kind: fc.constant('add' as const), n: fc.nat(60) }),
    fc.record({ kind: fc.constant('decide' as const), n: fc.nat(60) }),
    fc.record({ kind: fc.constant('first' as const) }),
    fc.record({ kind: fc.constant('round' as const) }),
  )
  fc.assert(
    fc.property(
      fc.constantFrom(...orders),
      fc.integer({ min: 1, max: 5 }),
      fc.uniqueArray(fc.nat(60)),
      fc.array(step, { maxLength: 40 }),
      (order, size, start, steps) => {
        const server = new Server(order, size)
        server.waiting = new Set(start)
        let time = 0
        const clock = () => ++time
        let loaded = begun(undefined, server.page(''), clock(), order)
        for (const { kind, ...rest } of steps) {
          const n = (rest as { n?: number }).n ?? 0
          if (kind === 'more' && loaded.next_cursor !== null)
            loaded = extended(loaded, loaded.next_cursor, server.page(loaded.next_cursor), clock())
          if (kind === 'add') server.waiting.add(n)
          if (kind === 'decide') server.waiting.delete(n)
          if (kind === 'first') loaded = begun(loaded, server.page(''), clock(), order)
          const next = due(loaded)
          if (kind === 'round' && next) loaded = withPage(loaded, next, server.page(next.cursor), clock())
        }
        loaded = settled(server, begun(loaded, server.page(''), clock(), order), clock)
        const all = server.all()
        expect(loaded.items.map((one) => one.action_id)).toEqual(
          all.slice(0, loaded.items.length).map((one) => one.action_id),
        )
        if (loaded.next_cursor === null) expect(loaded.items.length).toBe(all.length)
        else expect(loaded.items.length).toBeGreaterThanOrEqual(Math.min(size, all.length))
      },
    ),
    { numRuns: 500 },
  )
})

test('a page that is read again leaves items that are as they were the same objects', () => {
  const server = new Server('oldest', 3)
  server.waiting = new Set([1, 2, 3, 4])
  const before = begun(undefined, server.page(''), 1, 'oldest')
  server.waiting.delete(1)
  const after = begun(before, server.page(''), 2, 'oldest')
  expect(after.items.map((one) => before.items.includes(one))).toEqual([true, true, false])
})

test('one page is read again at a time, the one that was read longest ago', () => {
  const server = new Server('oldest', 2)
  server.waiting = new Set([1, 2, 3, 4, 5, 6, 7])
  let loaded = begun(undefined, server.page(''), 1, 'oldest')
  for (const at of [2, 3]) loaded = extended(loaded, loaded.next_cursor!, server.page(loaded.next_cursor!), at)
  expect(due(loaded)).toBeUndefined()
  loaded = begun(loaded, server.page(''), 4, 'oldest')
  expect(due(loaded)?.cursor).toBe('2')
  loaded = withPage(loaded, due(loaded)!, server.page('2'), 5)
  // Another change has all of them read again, and the round goes on where it was.
  loaded = begun(loaded, server.page(''), 6, 'oldest')
  expect(due(loaded)?.cursor).toBe('4')
  loaded = withPage(loaded, due(loaded)!, server.page('4'), 7)
  expect(due(loaded)?.cursor).toBe('2')
})
