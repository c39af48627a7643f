// Values to read: a lens on a value, of which nothing is left out or written otherwise.
import type { Json } from '../lib/json'
import { shown } from '../lib/text'
import { useReadable } from './beside'
import { titleOf } from './editing'
import { Line, Table } from './lists'
import { MarksAt } from './marks'
import { type Field, face, leaves } from './plan'
import { type Folds, Long } from './text'

// Loosening is the part that a grant leaves open: any argument, and members of objects, but nothing inside of lists.
export interface Loosening {
  loose: ReadonlySet<string>
  toggle: (pointer: string) => void
}

// Values shows the fields of a value to read.
export function Values({ of: root, folds, loosening }: { of: Field; folds: Folds; loosening?: Loosening }) {
  const sent = root.children.some((child) => child.value !== undefined)
  return (
    <>
      {!sent && (
        <div data-value="">
          {root.kind === 'object' ? <p className="muted">No arguments.</p> : <Value field={root} folds={folds} />}
          <MarksAt of="" />
        </div>
      )}
      {root.children.length > 0 && <Members of={root} folds={folds} loosening={loosening} />}
    </>
  )
}

// valuesOf returns the names of the values that Values shows, as they are in data-value.
export function valuesOf(root: Field): string[] {
  const shown = leaves(root)
    .filter((field) => field.value !== undefined)
    .map((field) => field.pointer)
  return shown.length ? shown : ['']
}

interface Reading {
  folds: Folds
  loosening: Loosening | undefined
}

function Members({ of, folds, loosening }: { of: Field } & Reading) {
  const sent = of.children.filter((child) => child.value !== undefined)
  const absent = of.children.filter((child) => child.value === undefined)
  return (
    <>
      <dl className="values">
        {sent.map((child) => (
          <div key={child.pointer} data-pointer={child.pointer}>
            <dt>
              <bdi>{shown(child.name)}</bdi>
              {titleOf(child) && (
                <span className="faint">
                  <bdi>{shown(titleOf(child)!)}</bdi>
                </span>
              )}
              {!child.known && <span className="faint"> not in the schema</span>}
              {child.children.length > 0 && <MarksAt of={child.pointer} inside={false} />}
              {loosening && <Loosen loosening={loosening} field={child} />}
            </dt>
            {child.children.length ? (
              <dd>
                <Members
                  of={child}
                  folds={folds}
                  loosening={child.kind === 'list' || loosening?.loose.has(child.pointer) ? undefined : loosening}
                />
              </dd>
            ) : (
              <dd data-value={child.pointer}>
                <Value field={child} folds={folds} />
                <Beside field={child} of={of.value} />
                <MarksAt of={child.pointer} />
                {explains(child) && <p className="faint small">{shown(child.description!)}</p>}
              </dd>
            )}
          </div>
        ))}
      </dl>
      {absent.length > 0 && (
        <p className="faint absent">
          Not sent:{' '}
          {absent.map((child, i) => (
            <span key={child.pointer}>
              {i > 0 && ', '}
              <bdi>{shown(child.name)}</bdi>
            </span>
          ))}
        </p>
      )}
    </>
  )
}

function Loosen({ loosening: { loose, toggle }, field }: { loosening: Loosening; field: Field }) {
  return (
    <label className="loosen">
      <input type="checkbox" checked={loose.has(field.pointer)} onChange={() => toggle(field.pointer)} />
      any<span className="unseen"> {shown(field.pointer)}</span>
    </label>
  )
}

// explains reports whether the description of a field helps: a number, a choice, true or null means little alone.
function explains({ kind, description }: Field): boolean {
  const little = kind === 'number' || kind === 'boolean' || kind === 'choice' || kind === 'null'
  return little && description !== undefined && description.length <= 200
}

// Beside shows a date or an amount as a person writes it, beside the exact value.
function Beside({ field, of }: { field: Field; of: Json | undefined }) {
  const text = useReadable(field, of)
  return text === undefined ? null : <span className="beside">{text}</span>
}

// Value shows a field without fields inside. An empty value is named: an empty text, list or object.
function Value({ field, folds }: { field: Field; folds: Folds }) {
  const value = field.value
  if (value === '') return <span className="blank">empty text</span>
  if (value === null) return <span className="blank">null</span>
  if (Array.isArray(value) && !value.length) return <span className="blank">empty list</span>
  if (field.kind === 'object') return <span className="blank">empty object</span>
  const opened = folds.opened.has(field.pointer)
  const open = () => folds.open(field.pointer)
  if (field.kind === 'line')
    return <Line pointer={field.pointer} values={value as Json[]} opened={opened} open={open} />
  if (field.kind === 'table') return <Table field={field} opened={opened} open={open} />
  if (typeof value === 'string' && field.kind !== 'json')
    return <Long text={value} pointer={field.pointer} folds={folds} />
  const text = face(field)
  return (
    <code className={text.includes('\n') ? 'block' : undefined}>
      <Long text={text} pointer={field.pointer} folds={folds} />
    </code>
  )
}
