import { describe, expect, test } from 'vitest'
import { outcome } from './runs'

describe('the outcome of an undo', () => {
  test('counts what is undone, withdrawn, waits and cannot be undone', () => {
    const items = ['accepted', 'known', 'withdrawn', 'waiting', 'refused', 'denied'].map((result) => ({ result }))

    expect(outcome(items as Parameters<typeof outcome>[0])).toBe(
      '2 actions are being undone, 1 were withdrawn before they were sent. ' +
        '1 wait for these: undo the run again. 2 cannot be undone.',
    )
  })
  test('leaves out what there is none of', () => {
    expect(outcome([])).toBe('0 actions are being undone, 0 were withdrawn before they were sent.')
  })
})
