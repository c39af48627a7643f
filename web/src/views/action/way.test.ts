import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fold, type Item, place, type Span, spans } from './way'

const start = Date.parse('2026-01-02T10:00:00Z')
const at = (seconds: number) => new Date(start + seconds * 1_000).toISOString()
const attempt = (n: number, from: number, to: number, code = ''): Item => ({
  at: at(to),
  kind: 'attempt',
  attempt: { attempt: n, status: code ? 'pending' : 'sent', code, started_at: at(from), finished_at: at(to) },
})
const waits = (seconds: number, what: string): Item => ({
  at: at(seconds),
  kind: 'waits',
  detail: { waiting: { for: what, message: what, until: null } },
})

const item: fc.Arbitrary<Item> = fc.oneof(
  fc.record({
    at: fc.integer({ min: 0, max: 9_000 }).map(at),
    kind: fc.constantFrom(
      'proposed',
      'asked',
      'voted',
      'edited',
      'approved',
      'replayed',
      'undone',
      'ended',
      'something_new',
    ),
  }),
  fc.tuple(fc.nat(9_000), fc.constantFrom('bucket', 'quiet_hours')).map(([s, what]) => waits(s, what)),
  fc
    .tuple(fc.nat(9), fc.nat(9_000), fc.nat(50), fc.constantFrom('', 'http_503'))
    .map(([n, from, long, code]) => attempt(n, from, from + long, code)),
)
const history = fc.array(item, { maxLength: 30 })

describe('folding', () => {
  test('keeps every entry, in order', () => {
    fc.assert(
      fc.property(history, (items) => void expect(fold(items).flatMap((f) => f.items ?? [f.item])).toEqual(items)),
    )
  })

  test('never takes in what a person did, nor an end, nor different things', () => {
    fc.assert(
      fc.property(history, (items) => {
        for (const { items: run } of fold(items)) {
          if (!run) continue
          expect(run.length).toBeGreaterThanOrEqual(3)
          expect(
            new Set(run.map((i) => `${i.kind} ${i.detail?.waiting?.for ?? ''} ${i.attempt?.code ?? ''}`)).size,
          ).toBe(1)
          expect(['waits', 'attempt']).toContain(run[0]!.kind)
        }
      }),
    )
  })

  test('leaves two alone and folds fourteen', () => {
    const twice = [waits(1, 'bucket'), waits(2, 'bucket')]
    expect(fold(twice).every((f) => f.item)).toBe(true)
    const many = Array.from({ length: 14 }, (_, i) => waits(i, 'bucket'))
    expect(fold([...many, waits(20, 'quiet_hours')]).map((f) => f.items?.length ?? 1)).toEqual([14, 1])
  })
})

describe('spans', () => {
  test('of an action that two people approved and that was tried twice', () => {
    const items: Item[] = [
      { at: at(0), kind: 'proposed' },
      { at: at(0), kind: 'asked' },
      { at: at(100), kind: 'voted' },
      { at: at(200), kind: 'approved' },
      attempt(1, 300, 301, 'http_503'),
      attempt(2, 303, 304),
    ]
    expect(
      spans(items, true, start + 900_000).map((s) => [s.kind, (s.from - start) / 1_000, (s.to - start) / 1_000]),
    ).toEqual([
      ['person', 0, 200],
      ['wait', 200, 300],
      ['call', 300, 301],
      ['wait', 301, 303],
      ['call', 303, 304],
    ])
  })

  test('that have not ended go on until now', () => {
    expect(
      spans([{ at: at(0), kind: 'proposed' }, waits(5, 'quiet_hours')], false, start + 60_000).at(-1),
    ).toMatchObject({ kind: 'wait', words: 'waits for quiet_hours', to: start + 60_000 })
  })

  test('do not overlap and are in order, whatever the history', () => {
    fc.assert(
      fc.property(history, fc.boolean(), (items, ended) => {
        const all = spans(items, ended, start + 10_000_000)
        for (const [i, span] of all.entries()) {
          expect(span.to).toBeGreaterThanOrEqual(span.from)
          if (i > 0) expect(span.from).toBeGreaterThanOrEqual(all[i - 1]!.to)
        }
        expect(all.filter((s) => s.kind === 'call')).toHaveLength(items.filter((i) => i.attempt).length)
      }),
    )
  })
})

describe('the bar', () => {
  const all = fc
    .array(fc.tuple(fc.constantFrom<Span['kind'][]>('wait', 'call'), fc.nat(10_000_000)), {
      minLength: 1,
      maxLength: 60,
    })
    .map((lengths) => {
      let from = 0
      return lengths.map(([kind, long]): Span => {
        const span = { kind, words: '', from, to: from + long }
        from += long
        return span
      })
    })

  test('is filled, in order, with nothing too narrow to see and nothing shorter drawn wider', () => {
    fc.assert(
      fc.property(all, (given) => {
        const placed = place(given)
        let x = 0
        for (const p of placed) {
          expect(p.x).toBeCloseTo(x, 9)
          expect(p.width).toBeGreaterThanOrEqual(0.006 - 1e-12)
          x += p.width
        }
        if (given.some((s) => s.to > s.from)) expect(x).toBeCloseTo(1, 6)
        for (const a of placed)
          for (const b of placed)
            if (a.to - a.from > b.to - b.from) expect(a.width).toBeGreaterThanOrEqual(b.width - 1e-12)
      }),
    )
  })
})
