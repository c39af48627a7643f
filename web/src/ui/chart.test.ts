import { expect, test } from 'vitest'
import { draw, top } from './chart'

test('the scale ends at a round number that is at least as high', () => {
  for (const [values, want] of [
    [[], 1],
    [[0, 0], 1],
    [[1], 1],
    [[3], 5],
    [[0.3], 0.5],
    [[41, 7], 50],
    [[100], 100],
    [[5_001], 10_000],
  ] as const)
    expect(top(values)).toBeCloseTo(want, 9)
})

test('a line has a gap where a step has no point', () => {
  const at = (minute: number, value: number) => [minute * 60, value] as const
  expect(draw([], [0, 600, 60, 10])).toBe('')
  expect(draw([at(0, 0), at(1, 10), at(4, 5), at(5, 10)], [0, 600, 60, 10])).toBe(
    'M0.0 100.0h2L60.0 0.0M240.0 50.0h2L300.0 0.0',
  )
})
