import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { conditions, type Field, type Filter, query, readFilter, set, writeFilter } from './filter'

const phases = ['pending', 'approved', 'failed'] as const
const fields: readonly Field[] = [
  { name: 'phase', label: 'Phase', kind: 'several', choices: phases },
  { name: 'tool', label: 'Tool', kind: 'text' },
  { name: 'order', label: 'Order', kind: 'choice', choices: ['newest', 'oldest'] },
  { name: 'since', label: 'Since', kind: 'time' },
  { name: 'workflow', label: 'Workflow', kind: 'id' },
  { name: 'drawer', label: 'Drawer', kind: 'choice', choices: ['replay'], view: true },
]

const text = fc.string({ minLength: 1, unit: 'grapheme' })
const filters: fc.Arbitrary<Filter> = fc
  .record(
    {
      phase: fc.subarray([...phases], { minLength: 1 }),
      tool: text,
      order: fc.constantFrom('newest', 'oldest'),
      since: fc
        .date({ min: new Date('1980-01-01'), max: new Date('2100-01-01'), noInvalidDate: true })
        .map((d) => d.toISOString()),
      workflow: fc.uuid(),
      drawer: fc.constant('replay'),
    },
    { requiredKeys: [] },
  )
  .map((f) => f as Filter)

describe('a filter', () => {
  test('is the same after it was written into a URL and read', () => {
    fc.assert(
      fc.property(filters, (filter) => {
        expect(readFilter(fields, writeFilter(fields, filter))).toEqual({ filter: { ...filter }, problems: [] })
      }),
    )
  })

  test('has one URL, whatever the order in which its conditions came', () => {
    fc.assert(
      fc.property(filters, (filter) => {
        const pairs = [...new URLSearchParams(writeFilter(fields, filter))].reverse()
        const { filter: read } = readFilter(fields, new URLSearchParams(pairs).toString())
        expect(writeFilter(fields, read)).toBe(writeFilter(fields, filter))
      }),
    )
  })

  test('asks the API for everything but what is the page’s own', () => {
    expect(query(fields, { phase: ['approved', 'failed'], tool: 'mail:*', drawer: 'replay' })).toEqual({
      phase: 'approved,failed',
      tool: 'mail:*',
    })
  })

  test('is told in words', () => {
    expect(
      conditions(fields, { tool: 'mail:*', phase: ['approved', 'failed'] }).map((c) => [c.field.name, c.words]),
    ).toEqual([
      ['phase', 'approved or failed'],
      ['tool', 'mail:*'],
    ])
  })

  test('loses a condition that is set to nothing', () => {
    expect(set(set({ tool: 'a:b' }, 'tool', ''), 'phase', [])).toEqual({})
  })
})

describe('a URL that is not understood is an error', () => {
  test.each([
    ['colour=red', 'Unknown filter “colour”'],
    ['__proto__=x', 'Unknown filter “__proto__”'],
    ['tool=a:b&tool=c:d', 'is there twice'],
    ['tool=a:b&tool=a:b', 'is there twice'],
    ['phase=failed&phase=pending', 'is there twice'],
    ['phase=failed,failed', 'has “failed” twice'],
    ['phase=failed,', 'is empty'],
    ['phase=ended', 'It can be pending, approved, failed'],
    ['order=newest&order=oldest', 'is there twice'],
    ['since=yesterday', 'takes a time'],
    ['since=2026-01-02', 'takes a time'],
    ['since=2026-01-02T03:04:05', 'takes a time'],
    ['workflow=7', 'takes an id'],
    ['tool=', 'is empty'],
  ])('%s', (search, words) => {
    expect(readFilter(fields, search).problems).toEqual([expect.stringContaining(words)])
  })

  test('whatever it has that no field takes', () => {
    fc.assert(
      fc.property(filters, text, (filter, name) => {
        fc.pre(!fields.some((f) => f.name === name))
        const search = new URLSearchParams(writeFilter(fields, filter))
        search.append(name, 'x')
        expect(readFilter(fields, search.toString()).problems).toHaveLength(1)
      }),
    )
  })
})
