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

test('a new value has no precondition', () => {
  expect(matchOf({ value: null, etag: '' })).toBeUndefined()
})

test('the stored version comes back where somebody else changed it', async () => {
  const stored = { value: { limit: 3 }, etag: 'def' }
  const write = () => Promise.reject(refusal(412))
  expect(await settle({ value: { limit: 1 }, etag: 'abc' }, { limit: 2 }, { write, read: async () => stored })).toBe(
    stored,
  )
})

test('something that another person made meanwhile is not written over', async () => {
  const write = vi.fn(async () => {})
  const stored = { value: { limit: 3 }, etag: 'def' }
  expect(await settle({ value: null, etag: '' }, { limit: 2 }, { write, read: async () => stored })).toBe(stored)
  expect(write).not.toHaveBeenCalled()
})

test('something new is written without a precondition', async () => {
  const write = vi.fn(async () => {})
  const read = async () => ({ value: null, etag: '' })
  expect(await settle({ value: null, etag: '' }, { limit: 2 }, { write, read })).toBeUndefined()
  expect(write.mock.calls).toEqual([[{ limit: 2 }, undefined]])
})

test('another refusal is thrown, and nothing is read', async () => {
  const read = vi.fn()
  const write = () => Promise.reject(refusal(403))
  await expect(settle({ value: null, etag: 'abc' }, { limit: 2 }, { write, read })).rejects.toThrow('changed')
  expect(read).not.toHaveBeenCalled()
})
