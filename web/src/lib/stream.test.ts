import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Reader } from './stream'

const text = ': alive\n\nid: 1-2-0\n\nid: 1-3-0\nevent: settled\ndata: {"a":1}\n\ndata: x\ndata: y\r\n\n'
const messages = [
  { id: '1-2-0', event: '', data: '' },
  { id: '1-3-0', event: 'settled', data: '{"a":1}' },
  { id: '', event: '', data: 'x\ny' },
]

test('a stream gives the same messages however it is cut', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: text.length })), (cuts) => {
      const at = [0, ...cuts.toSorted((a, b) => a - b), text.length]
      const reader = new Reader()
      expect(at.slice(1).flatMap((end, i) => reader.read(text.slice(at[i]!, end)))).toEqual(messages)
    }),
  )
})
