// The form as it is drawn, without a browser.
import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'
import { parse } from '../lib/json'
import { draftOf } from './draft'
import { Form } from './Form'
import { Values } from './Values'

const folds = { opened: new Set<string>(), open: () => undefined }
const drawn = (schema: string, value: string, opened: string[] = []) =>
  renderToStaticMarkup(
    <Values schema={parse(schema)} value={parse(value)} folds={{ ...folds, opened: new Set(opened) }} />,
  )
const edited = (schema: string, value: string) =>
  renderToStaticMarkup(
    <Form schema={parse(schema)} draft={draftOf(parse(value))} onDraft={() => undefined} complaints={[]} />,
  )

test('a line has each value in a box of its own, and what hides is written out', () => {
  const html = drawn('{"properties":{"to":{"type":"array"}}}', '{"to":["a, b","\\u202ec","",null,1.10]}')
  expect(html.match(/<li>/g)).toHaveLength(5)
  expect(html).toContain('a, b')
  expect(html).toContain('\\u{202E}c')
  expect(html).toContain('has invisible characters')
  expect(html).toContain('<code>1.10</code>')
})

test('absent, null and empty are different cells, and an opened table is whole', () => {
  const schema = '{"properties":{"rows":{"type":"array"}}}'
  const value = `{"rows":[{"a":null},{"a":""},${Array.from({ length: 30 }, () => '{"b":9007199254740993}').join(',')}]}`
  const folded = drawn(schema, value)
  expect(folded).toContain('Show 12 more rows')
  for (const word of ['not sent', 'null', 'empty text', '9007199254740993']) expect(folded).toContain(word)
  expect(drawn(schema, value, ['/rows']).match(/<tr>/g)).toHaveLength(33)
  expect(drawn(schema, value, ['/rows'])).not.toContain('Show 12')
})

test('markup in values is text', () => {
  const html = drawn('{"properties":{"rows":{"type":"array"}}}', '{"rows":[{"<b>":"<img src=x>"},{"<b>":1}]}')
  expect(html).not.toContain('<img')
  expect(html).not.toContain('<b>')
})

test('a title that only repeats the name is left out, and a description stands by a number', () => {
  const schema = `{"properties":{"dry_run":{"type":"boolean","title":"Dry Run","description":"Nothing is sent."},
    "n":{"type":"string","title":"Number of the invoice","description":"A long story."}}}`
  const html = drawn(schema, '{"dry_run":true,"n":"117"}')
  expect(html).not.toContain('Dry Run')
  expect(html).toContain('Nothing is sent.')
  expect(html).toContain('Number of the invoice')
  expect(html).not.toContain('A long story.')
})

test('single lines are inputs, texts of several lines and JSON are areas, and a union has a choice', () => {
  const schema = `{"properties":{"subject":{"type":"string"},"body":{"type":"string"},
    "note":{"type":"string","format":"email"},
    "u":{"type":["string","integer"]},"o":{}}}`
  const html = edited(schema, '{"subject":"a","body":"b","note":"c","u":5,"o":{"x":1}}')
  expect(html.match(/<textarea/g)).toHaveLength(2)
  expect(html).toContain('Variant of')
  expect(html).toMatch(/<option value="1" selected="">integer<\/option>/)
  expect(edited(schema, '{"subject":"a\\nb"}')).toContain('<textarea')
})
