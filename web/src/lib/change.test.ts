import { expect, test, vi } from 'vitest'
import { matchOf, settle } from './change'
import { Problem } from './client'

const refusal = (status: number) => new Problem(status, { title: 'changed' }, new Headers())

test('a change names the version that it is based on', async () => {
  const write = vi.fn(async () => {})
  const theirs = await settle({ value: { limit: 1 }, etag: 'abc' }, { limit: 2 }, { write, read: vi.fn() })
  expect(theirs).toBeUndefined()
  expect(write.mock.calls).toEqual([[{ limit: 2 }, '"abc"']])
})

test('the precondition of a new value is that nothing is stored', () => {
  expect(matchOf({ value: null, etag: '' })).toBe('*')
})

test('the stored version comes back where somebody else changed it', async () => {
  const stored = { value: { limit: 3 }, etag: 'def' }
  const write = () => Promise.reject(refusal(412))
  expect(await settle({ value: { limit: 1 }, etag: 'abc' }, { limit: 2 }, { write, read: async () => stored })).toBe(
    stored,
  )
})

test('something that another person made meanwhile is returned', async () => {
  const write = vi.fn(() => Promise.reject(refusal(412)))
  const stored = { value: { limit: 3 }, etag: 'def' }
  expect(await settle({ value: null, etag: '' }, { limit: 2 }, { write, read: async () => stored })).toBe(stored)
  expect(write.mock.calls).toEqual([[{ limit: 2 }, '*']])
})

test('something new is written at once', async () => {
  const read = vi.fn()
  const write = async () => {}
  expect(await settle({ value: null, etag: '' }, { limit: 2 }, { write, read })).toBeUndefined()
  expect(read).not.toHaveBeenCalled()
})

test('another refusal is thrown, and nothing is read', async () => {
  const read = vi.fn()
  const write = () => Promise.reject(refusal(403))
  await expect(settle({ value: null, etag: 'abc' }, { limit: 2 }, { write, read })).rejects.toThrow('changed')
  expect(read).not.toHaveBeenCalled()
})
