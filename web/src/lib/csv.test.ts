import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cell, csv, flat, jsonLines } from './csv'
import { type Json, parse } from './json'

// read reads CSV as RFC 4180 has it.
function read(text: string): string[][] {
  const rows: string[][] = [[]]
  const cells = /("(?:[^"]|"")*"|[^",\r\n]*)(,|\r\n)/y
  for (let found = cells.exec(text); found; found = cells.exec(text)) {
    const [, value, end] = found
    rows.at(-1)!.push(value!.startsWith('"') ? value!.slice(1, -1).replaceAll('""', '"') : value!)
    if (end !== ',') rows.push([])
  }
  return rows.slice(0, -1)
}

describe('a cell', () => {
  test.each([
    ['=1+1', "'=1+1"],
    ['+49 1', "'+49 1"],
    ['-1', "'-1"],
    ['@SUM(A1)', "'@SUM(A1)"],
    ['\t=1', "'\t=1"],
    ['\r=1', "'\r=1"],
    ['＝1', "'＝1"],
    ['a;=cmd|x', "a;'=cmd|x"],
    ['a\n=cmd', "a\n'=cmd"],
    ['a=1', 'a=1'],
    ['Привет', 'Привет'],
  ])('%j is %j', (text, is) => expect(cell(text)).toBe(`"${is}"`))
  test('has its quotes doubled, and cannot end early', () => {
    expect(cell('a","=1')).toBe('"a"",""=1"')
  })
  test('with a number has its digits', () => {
    expect(cell(parse('-12345678901234567890.10'))).toBe('-12345678901234567890.10')
    expect(cell(null)).toBe('')
  })
})

test('no cell begins as a formula, whatever is in it', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('=', '+', '-', '@', '\t', '\r', '\n', '"', ',', ';', 'a', '＝') }),
      (text) => {
        const [[found]] = read(`${cell(text)}\r\n`) as [[string]]
        expect(found).not.toMatch(/^[=+\-@\t\r＝＋－＠]/)
        expect(found.replaceAll("'", '')).toBe(text)
      },
    ),
  )
})

test('columns are those of all rows, with paths for members', () => {
  const rows = [
    { a: 1, b: { c: '=x' } },
    { a: 2, d: [1, 'é'] },
  ] as Json[]
  expect(read(csv(rows).slice(1))).toEqual([
    ['a', 'b.c', 'd'],
    ['1', "'=x", ''],
    ['2', '', '[1,"é"]'],
  ])
  expect(csv(rows).charCodeAt(0)).toBe(0xfeff)
  expect(read(csv([]).slice(1))).toEqual([['']])
})

test('a member called __proto__ is a column', () => {
  expect([...flat(parse('{"__proto__":{"x":1}}')).keys()]).toEqual(['__proto__.x'])
})

test('JSON lines have exact values, one row a line', () => {
  expect(jsonLines([parse('{"n":12345678901234567890,"t":"a\\nb"}')])).toBe('{"n":12345678901234567890,"t":"a\\nb"}\n')
})
