import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { afterPaint } from './painted'

const frames: (() => void)[] = []
const frame = () => {
  for (const run of frames.splice(0)) run()
}

beforeEach(() => {
  vi.useFakeTimers()
  vi.stubGlobal('requestAnimationFrame', (run: () => void) => frames.push(run))
})
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

test('all that waits for a frame runs together after it, in order, without that which was canceled', () => {
  const ran: string[] = []
  afterPaint(() => ran.push('first'))
  afterPaint(() => ran.push('canceled'))()
  afterPaint(() => ran.push('last'))
  expect(frames).toHaveLength(1)
  vi.advanceTimersByTime(100)
  expect(ran).toEqual([])
  frame()
  afterPaint(() => ran.push('of the next frame'))
  vi.advanceTimersByTime(1)
  expect(ran).toEqual(['first', 'last'])
  frame()
  vi.advanceTimersByTime(1)
  expect(ran).toEqual(['first', 'last', 'of the next frame'])
})

test('a page without frames waits 200 ms, and runs nothing twice', () => {
  let ran = 0
  afterPaint(() => ran++)
  vi.advanceTimersByTime(200)
  expect(ran).toBe(1)
  frame()
  vi.advanceTimersByTime(1_000)
  expect(ran).toBe(1)
})

test('one that fails or cancels another does not stop the others', () => {
  const reported = vi.fn()
  vi.stubGlobal('reportError', reported)
  const ran: string[] = []
  let cancel = () => {}
  afterPaint(() => {
    cancel()
    throw new Error('broken')
  })
  cancel = afterPaint(() => ran.push('canceled'))
  afterPaint(() => ran.push('other'))
  frame()
  vi.advanceTimersByTime(1)
  expect(ran).toEqual(['other'])
  expect(reported).toHaveBeenCalledWith(new Error('broken'))
})
