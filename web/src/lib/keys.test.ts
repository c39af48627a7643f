import { expect, test } from 'vitest'
import { commandIDs, keyOf, table } from './keys'

const pressed = (key: string, held: Partial<KeyboardEvent> = {}) =>
  keyOf({ key, shiftKey: false, ctrlKey: false, metaKey: false, altKey: false, ...held })

test('no key gives two commands, and no key begins the sequence of another', () => {
  const keys = commandIDs.flatMap((id) => table[id].keys)
  expect(keys.filter((key, at) => keys.indexOf(key) !== at)).toEqual([])
  expect(keys.filter((key) => keys.some((other) => other.startsWith(key + ' ')))).toEqual([])
})

test('both cases of a letter are the letter, and Shift is told apart', () => {
  expect(pressed('a')).toBe('a')
  expect(pressed('A')).toBe('a')
  expect(pressed('J', { shiftKey: true })).toBe('Shift+j')
  expect(pressed('?', { shiftKey: true })).toBe('?')
  expect(pressed('k', { ctrlKey: true })).toBe('Mod+k')
  expect(pressed('a', { altKey: true })).toBe('')
  expect(pressed('Enter', { ctrlKey: true })).toBe('Mod+Enter')
})
