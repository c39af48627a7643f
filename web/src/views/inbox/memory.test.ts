import { expect, test } from 'vitest'
import { draftOf } from '../../form/draft'
import { mostDecided, mostSeen, recall, remember, rememberAll } from './memory'

const seen = (n: number) => ({ etag: String(n), args: { body: 'x' }, at: n })
const id = (n: number) => `action-${n}`

test('what was looked at is forgotten, oldest first; what was typed, is sent or was refused is kept', () => {
  remember('typed', { seen: seen(0), draft: draftOf({ body: 'mine' }), mode: 'edit' })
  remember('noted', { seen: seen(0), note: 'Not now' })
  remember('sent', { seen: seen(0), sent: { words: 'approving', at: 0 } })
  remember('refused', { seen: seen(0), refused: { words: 'not approved', why: 'It changed.', complaints: [] } })
  remember('decided', { seen: seen(0), outcome: { words: 'denied by you', state: 'denied' } })
  for (let n = 0; n < mostSeen + 10; n++) remember(id(n), { seen: seen(n) })
  expect(Array.from({ length: mostSeen + 10 }, (_, n) => recall(id(n)).seen !== undefined)).toEqual([
    ...Array<boolean>(10).fill(false),
    ...Array<boolean>(mostSeen).fill(true),
  ])
  for (const kept of ['typed', 'noted', 'sent', 'refused']) expect(recall(kept).seen, kept).toEqual(seen(0))
  expect(recall('decided')).toMatchObject({ outcome: { words: 'denied by you' } })
  expect(recall('decided').seen).toBeUndefined()
})

test('what was decided is kept of a bounded number, and told of once', () => {
  const outcome = { words: 'approved by you', state: 'approved' } as const
  rememberAll(Array.from({ length: mostDecided + 5 }, (_, n) => [`many-${n}`, { outcome }] as const))
  expect(recall('many-0').outcome).toBeUndefined()
  expect(recall('many-5').outcome).toBeDefined()
})
