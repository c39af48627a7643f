import { expect, test } from 'vitest'
import { notice, titled } from './waits'

test('the title counts what waits', () => {
  expect(titled('Inbox', 0)).toBe('Inbox · Countersign')
  expect(titled('People', 3)).toBe('(3) People · Countersign')
})

test('a notification has a number, only where there is more than before', () => {
  expect(notice(undefined, 3)).toBeUndefined()
  expect(notice(3, 3)).toBeUndefined()
  expect(notice(3, 2)).toBeUndefined()
  expect(notice(0, 1)).toBe('One action waits for a person.')
  expect(notice(1, 2_000)).toBe('2,000 actions wait for a person.')
})
