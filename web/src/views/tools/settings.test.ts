import { expect, test, vi } from 'vitest'
import { draftOf, valueFrom } from '../../form/plain'
import { Problem } from '../../lib/client'
import { argumentsOf, sample } from './sample'
import { description, overrides, partly, preview } from './settings'

const refusal = new Problem(412, { title: 'changed' }, new Headers())

test('a change of another part of the tool is no collision', async () => {
  const write = vi.fn().mockRejectedValueOnce(refusal).mockResolvedValueOnce('stored')
  const read = async () => ({ value: { risk: 'read' }, etag: 'new' })
  expect(await partly({ risk: 'read' }, '"old"', read, write)).toBe('stored')
  expect(write.mock.calls).toEqual([['"old"'], ['"new"']])
})

test('a change of the same part is one, and so is a second refusal', async () => {
  const refused = () => Promise.reject(refusal)
  const other = async () => ({ value: { risk: 'write' }, etag: 'new' })
  await expect(partly({ risk: 'read' }, '"old"', other, refused)).rejects.toBe(refusal)
  const alike = async () => ({ value: { risk: 'read' }, etag: 'new' })
  await expect(partly({ risk: 'read' }, '"old"', alike, refused)).rejects.toBe(refusal)
})

test('saving a part as it is stores what operators set, and nothing inferred', () => {
  const tool = {
    risk: 'danger',
    effect: 'once',
    configured: { risk: 'write', side_effects: [], reversal: { tool: 'a:b' } },
  }
  for (const [part, stored] of [
    [overrides, { risk: 'write' }],
    [description, { side_effects: [], reversal: { tool: 'a:b' } }],
  ] as const) {
    const value = part.of(tool as never)
    expect(valueFrom(part.fields, draftOf(part.fields, value)).value).toEqual(stored)
  }
})

const schema = { type: 'object', properties: { to: { type: 'array', items: {} }, amount: { type: 'number' } } }

test('a headline is previewed, with the pointers that no argument has', () => {
  expect(preview('Refund {/amount} to {/to/0}, {/nothing}', schema, { amount: 12.5, to: ['Ana'] })).toEqual({
    text: 'Refund 12.5 to Ana, ‹nothing›',
    unknown: ['/nothing'],
  })
  expect(preview('{/amount}', schema, sample(schema)).text).toBe('‹amount›')
  expect(preview('no {pointer} here', {}, {}).text).toBe('no {pointer} here')
  // A schema that does not describe its members may have any.
  expect(preview('{/x/y}', {}, {}).unknown).toEqual([])
})

test('a sample of a schema fits its types, and ends', () => {
  expect(sample(schema)).toEqual({ to: [], amount: 0 })
  expect(sample({ ...schema, required: ['amount'] })).toEqual({ amount: 0 })
  expect(
    sample({ type: 'object', properties: { kind: { enum: ['a', 'b'] }, n: { type: ['integer', 'null'] } } }),
  ).toEqual({
    kind: 'a',
    n: 0,
  })
  const self: Record<string, unknown> = { type: 'object' }
  self.properties = { again: self }
  expect(JSON.stringify(sample(self as never)).length).toBeLessThan(200)
  expect(sample(true)).toBeNull()
  expect(sample({})).toEqual({})
})

test('arguments are an object', () => {
  expect(argumentsOf('{"n": 1.50}')).toHaveProperty('args')
  for (const text of ['', '[]', '{"a":1,"a":2}', 'null']) expect(argumentsOf(text)).toHaveProperty('problem')
})
