import { expect, test } from 'vitest'
import { intact, joined, type Report, run, verdict } from './verify'

const hash = (c: string) => c.repeat(64)
const report = (more: Partial<Report> = {}): Report => ({
  findings: [],
  findings_omitted: 0,
  checkpoints: 2,
  covered: 10,
  pruned: 0,
  uncovered: 1,
  head: { checkpoint_no: 2, hash: hash('a') },
  ...more,
})
const changed = { kind: 'changed' as const, message: 'differs' }

test('all pages are read, in the order of the chain', async () => {
  const asked: (number | undefined)[] = []
  const pages = [
    report({ next_after: 2, findings: [{ ...changed, checkpoint_no: 1 }] }),
    report({ next_after: 4, findings_omitted: 3 }),
    report({ head: null, findings: [{ ...changed, checkpoint_no: 5 }] }),
  ]
  const seen: number[] = []
  const all = await run(
    (after) => {
      asked.push(after)
      return Promise.resolve(pages[asked.length - 1]!)
    },
    (so) => seen.push(Number(so.checkpoints)),
  )
  expect(asked).toEqual([undefined, 2, 4])
  expect(seen).toEqual([2, 4, 6])
  expect(all.findings.map((f) => f.checkpoint_no)).toEqual([1, 5])
  expect(all).toMatchObject({ covered: 30, findings_omitted: 3, head: { hash: hash('a') } })
  expect(verdict(all)).toBe('5 findings in 30 events in 6 checkpoints.')
  expect(intact(all)).toBe(false)
})

test('a server that does not go on ends it', async () => {
  let asked = 0
  await run(
    () => Promise.resolve(report({ next_after: ++asked > 0 ? 2 : 0 })),
    () => undefined,
  )
  expect(asked).toBe(2)
})

test('an intact record', () => {
  expect(intact(report())).toBe(true)
  expect(intact(report({ findings_omitted: 1 }))).toBe(false)
  expect(verdict(report({ pruned: 4 }))).toBe('Intact: 10 events in 2 checkpoints, and 4 that retention deleted.')
  expect(joined(undefined, report())).toEqual(report())
})
