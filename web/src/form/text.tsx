// Texts from outside, as they are read: nothing is cut without saying so, and nothing hides.

import { diffWordsWithSpace } from 'diff'
import { type ReactNode, useMemo } from 'react'
import { type Json, stringify } from '../lib/json'
import type { Change } from '../lib/pointer'
import { hides, shown } from '../lib/text'
import { Chip, Shown } from '../ui'
import { type Field, face, leaves } from './plan'
import { firstColumns, firstRows, firstValues } from './table'

type Lines = 'one line' | 'lines'

// HiddenMark says that a text has invisible characters.
export function HiddenMark() {
  return (
    <Chip tone="drift" icon="triangle">
      has invisible characters
    </Chip>
  )
}

// Folds says which long values are open, and opens one.
export interface Folds {
  opened: ReadonlySet<string>
  open: (...pointers: string[]) => void
}

const fold = 600

// foldedIn returns the pointers of the values of a form that are folded until somebody opens them.
export function foldedIn(of: Field): string[] {
  return leaves(of)
    .filter((field) => (field.kind === 'table' || field.kind === 'line' ? foldsList(field) : face(field).length > fold))
    .map((field) => field.pointer)
}

// foldsList reports whether a line or a table shows a part until somebody opens it.
export function foldsList({ kind, value, columns }: Field): boolean {
  const length = Array.isArray(value) ? value.length : 0
  return kind === 'table' ? length > firstRows || columns.length > firstColumns : length > firstValues
}

// Long shows a value, and of a long one the beginning, with how much more there is.
export function Long({
  text,
  pointer,
  folds,
  lines = 'lines',
  most = fold,
}: {
  text: string
  pointer: string
  folds: Folds
  lines?: Lines
  most?: number
}) {
  if (text.length <= most || folds.opened.has(pointer)) return <Shown text={text} lines={lines === 'lines'} />
  const cut = /[\ud800-\udbff]/.test(text[most - 101]!) ? most - 101 : most - 100
  return (
    <>
      <bdi>{shown(text.slice(0, cut), lines)}</bdi>
      {'… '}
      {hides(text, lines) && <HiddenMark />}
      <button type="button" className="link" onClick={() => folds.open(pointer)}>
        Show {(text.length - cut).toLocaleString('en')} more characters
      </button>
    </>
  )
}

interface Part {
  text: string
  side: 'same' | 'was' | 'now'
}

// words returns the parts of two texts. Words at their beginning and end that are the same are parts of their own, so
// that a change in a long text is found at once. Where finding the others would take long, they are the two texts.
export function words(was: string, now: string): Part[] {
  const most = Math.min(was.length, now.length)
  let start = 0
  while (start < most && was.charCodeAt(start) === now.charCodeAt(start)) start++
  while (start > 0 && !/\s/.test(was[start - 1]!)) start--
  let end = 0
  while (end < most - start && was.charCodeAt(was.length - 1 - end) === now.charCodeAt(now.length - 1 - end)) end++
  while (end > 0 && !/\s/.test(was[was.length - end]!)) end--
  const parts: Part[] = [
    { text: was.slice(0, start), side: 'same' },
    ...inner(was.slice(start, was.length - end), now.slice(start, now.length - end)),
    { text: was.slice(was.length - end), side: 'same' },
  ]
  return parts.filter((part) => part.text !== '')
}

function inner(was: string, now: string): Part[] {
  const found =
    was.length + now.length > 100_000 ? undefined : diffWordsWithSpace(was, now, { maxEditLength: 400, timeout: 60 })
  if (!found)
    return [
      { text: was, side: 'was' },
      { text: now, side: 'now' },
    ]
  return found.map((part) => ({ text: part.value, side: part.added ? 'now' : part.removed ? 'was' : 'same' }))
}

const context = 80

// WordDiff shows what of a text was taken away and what was added, by sign and by colour.
export function WordDiff({ was, now }: { was: string; now: string }) {
  const parts = useMemo(() => words(was, now), [was, now])
  return (
    <span className="diff">
      {parts.map((part, i) => (
        <DiffPart key={i} part={part} />
      ))}
      {(hides(was, 'lines') || hides(now, 'lines')) && <HiddenMark />}
    </span>
  )
}

function DiffPart({ part: { text, side } }: { part: Part }): ReactNode {
  if (side === 'was')
    return (
      <del>
        <span className="unseen">removed: </span>
        {shown(text, 'lines')}
      </del>
    )
  if (side === 'now')
    return (
      <ins>
        <span className="unseen">added: </span>
        {shown(text, 'lines')}
      </ins>
    )
  if (text.length <= 3 * context) return <span>{shown(text, 'lines')}</span>
  return (
    <span>
      {shown(text.slice(0, context), 'lines')}
      <span className="same"> … {(text.length - 2 * context).toLocaleString('en')} unchanged characters … </span>
      {shown(text.slice(-context), 'lines')}
    </span>
  )
}

// Changes lists what is different, by pointer. A text is compared by words, anything else as a whole.
export function Changes({ changes }: { changes: readonly Change[] }) {
  return (
    <ul className="diffs">
      {changes.map(({ pointer, was, now }) => (
        <li key={pointer}>
          <code className="pointer">
            <bdi>{shown(pointer || '(everything)')}</bdi>
          </code>
          {typeof was === 'string' && typeof now === 'string' ? (
            <WordDiff was={was} now={now} />
          ) : (
            <Sides was={was} now={now} />
          )}
        </li>
      ))}
    </ul>
  )
}

function Sides({ was, now }: { was: Json | undefined; now: Json | undefined }) {
  return (
    <span className="diff">
      <del>
        <span className="unseen">before: </span>
        {valueText(was)}
      </del>{' '}
      <ins>
        <span className="unseen">now: </span>
        {valueText(now)}
      </ins>
    </span>
  )
}

// valueText writes a value in one line, and what is absent in words.
export function valueText(value: Json | undefined): string {
  return value === undefined ? 'not sent' : shown(stringify(value))
}
