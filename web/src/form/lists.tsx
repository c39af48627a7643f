// Lists to read: values in a line, objects as a table.
import { memo, use } from 'react'
import type { Json, JsonObject } from '../lib/json'
import { below, join } from '../lib/pointer'
import { hides, shown } from '../lib/text'
import { Icon } from '../ui'
import { Marks } from './marks'
import type { Field } from './plan'
import { cellText, firstRows, firstValues } from './table'
import { foldsList, HiddenMark } from './text'

interface Folding {
  opened: boolean
  open: () => void
}

// Line shows a list of scalars, each in a box of its own, so that a comma in a value divides nothing.
export function Line({ pointer, values, opened, open }: { pointer: string; values: Json[] } & Folding) {
  const some = opened ? values : values.slice(0, firstValues)
  return (
    <>
      <ul className="line">
        {some.map((value, i) => (
          <li key={i}>
            <Cell value={value} pointer={join(pointer, i)} />
          </li>
        ))}
      </ul>
      {some.length < values.length && (
        <button type="button" className="link" onClick={open}>
          Show {(values.length - some.length).toLocaleString('en')} more values
        </button>
      )}
    </>
  )
}

// Table shows a list of objects: the first rows and the important columns, and all of them on request.
export function Table({ field, opened, open }: { field: Field } & Folding) {
  const rows = field.value as JsonObject[]
  const folded = foldsList(field) && !opened
  const columns = folded ? field.first : field.columns
  const [more, others] = [rows.length - firstRows, field.columns.length - columns.length]
  const rest = [more > 0 && `${more.toLocaleString('en')} more rows`, others > 0 && `${others} more columns`]
  return (
    <>
      <section className="cells" tabIndex={0} aria-label={`${shown(field.name)}, ${rows.length} rows`}>
        <Rows pointer={field.pointer} rows={rows} columns={columns} most={folded ? firstRows : rows.length} />
      </section>
      {folded && (
        <button type="button" className="link" onClick={open}>
          Show {rest.filter(Boolean).join(' and ')}
        </button>
      )}
    </>
  )
}

// Rows is drawn again where it changed alone: it may have a thousand.
const Rows = memo(function Rows({
  pointer,
  rows,
  columns,
  most,
}: {
  pointer: string
  rows: JsonObject[]
  columns: string[]
  most: number
}) {
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">#</th>
          {columns.map((name) => (
            <th key={name} scope="col">
              <bdi>{shown(name)}</bdi>
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.slice(0, most).map((row, i) => (
          <tr key={i}>
            <th scope="row">{i + 1}</th>
            {columns.map((name) => (
              <td key={name}>
                <Cell value={Object.hasOwn(row, name) ? row[name] : undefined} pointer={join(join(pointer, i), name)} />
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
})

function Cell({ value, pointer }: { value: Json | undefined; pointer: string }) {
  const marks = use(Marks)
  if (![...marks.keys()].some((one) => below(one, pointer))) return <Plain value={value} />
  return (
    <mark className="tone-drift">
      <Icon name="triangle" />
      <span className="unseen">look-alike: </span>
      <Plain value={value} />
    </mark>
  )
}

function Plain({ value }: { value: Json | undefined }) {
  if (value === undefined) return <span className="blank">not sent</span>
  if (value === null) return <span className="blank">null</span>
  if (value === '') return <span className="blank">empty text</span>
  const text = cellText(value)
  if (typeof value !== 'string') return <code>{shown(text)}</code>
  return (
    <>
      <bdi>{shown(text)}</bdi>
      {hides(text) && <HiddenMark />}
    </>
  )
}
