// The form as it is drawn, without a browser.
import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'
import { parse } from '../lib/json'
import { draftOf } from './draft'
import { Form } from './Form'
import { Marks } from './marks'
import { fieldsOf } from './plan'
import { Values } from './Values'

const folds = { opened: new Set<string>(), open: () => undefined }
const drawn = (schema: string, value: string, opened: string[] = []) =>
  renderToStaticMarkup(
    <Values of={fieldsOf(parse(schema), parse(value))} folds={{ ...folds, opened: new Set(opened) }} />,
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

test('a look-alike is marked where it is: in a list, in a row that is folded, in a nested value, and as a name', () => {
  const mark = (pointer: string, value: string) =>
    [pointer, [{ pointer, value, kind: 'letters' as const, text: 'looks like <apple.com>' }]] as const
  const rows = Array.from({ length: 1000 }, (_, i) => `{"email":"r${i}@example.org","n":{"x":1}}`)
  const value = parse(
    `{"to":["ana@example.org","bo@аpple.com"],"rows":[${rows.join(',')}],"any":{"a":{"b/c":["x"]}},
      "long":"${'x'.repeat(2000)} bo@аpple.com","mаl@example.org":{"y":1},"bo@example.org":"fine"}`,
  )
  const html = renderToStaticMarkup(
    <Marks
      value={
        new Map([
          mark('/to/1', 'bo@аpple.com'),
          mark('/rows/3/n/x', 'x@аpple.com'),
          mark('/rows/900/email', 'r900@аpple.com'),
          mark('/any/a/b~1c/0', '<b>x</b>'),
          mark('/long', 'bo@аpple.com'),
          mark('/mаl@example.org', 'mаl@example.org'),
        ])
      }
    >
      <Values
        of={fieldsOf(
          parse(
            '{"properties":{"to":{"type":"array"},"rows":{"type":"array"},' +
              '"any":{"type":"object"},"long":{"type":"string"}}}',
          ),
          value,
        )}
        folds={folds}
      />
    </Marks>,
  )
  expect(html.match(/<mark/g)).toHaveLength(2)
  expect(html).toMatch(/<mark[^>]*>.{0,400}look-alike: .{0,40}bo@аpple\.com/)
  const [, after] = html.split('Show 980 more rows')
  expect(after).toMatch(/<code>\/900\/email <\/code>/)
  expect(html.match(/looks like &lt;apple.com&gt;/g)).toHaveLength(6)
  expect(html).not.toContain('<b>x')
  for (const name of ['ana@example.org', 'fine', 'r5@example.org'])
    expect(html).not.toMatch(new RegExp(`<mark[^>]*>.{0,400}${name}`))
})

test('the form marks the field and describes it', () => {
  const html = renderToStaticMarkup(
    <Marks value={new Map([['/to', [{ pointer: '/to', value: 'a@xn--pple-43d.com', kind: 'letters', text: 'why' }]]])}>
      <Form
        schema={parse('{"properties":{"to":{"type":"string"},"cc":{"type":"string"}}}')}
        draft={draftOf(parse('{"to":"a@xn--pple-43d.com","cc":"a@apple.com"}'))}
        onDraft={() => undefined}
        complaints={[]}
      />
    </Marks>,
  )
  const [id] = /[^"]*-m(?=")/.exec(html)!
  expect(html).toContain(`aria-describedby="${id}"`)
  expect(html.match(/why/g)).toHaveLength(1)
})
