// The export of a list: all its rows, page after page, as a file. It has what the role may see, since it reads the same
// API.
import { useEffect, useRef, useState } from 'react'
import { get, Problem } from '../lib/client'
import { csv, jsonLines } from '../lib/csv'
import type { Json } from '../lib/json'
import { type Asked, pages } from '../lib/pages'
import { Button } from './button'
import { Dialog } from './dialog'
import { Field } from './field'
import { ProblemNote } from './problem'

export interface ExportProps {
  // name names the rows, and the file.
  name: string
  // to is the path of the list, and query its filter.
  to: string
  query?: Asked
}

export function Export(props: ExportProps) {
  const [open, setOpen] = useState(false)
  return (
    <>
      <Button icon="down" onClick={() => setOpen(true)}>
        Export…
      </Button>
      {open && <ExportDialog {...props} onClose={() => setOpen(false)} />}
    </>
  )
}

// most is how many rows a file has: the page keeps them until the file is written.
const most = 100_000

const formats = {
  csv: { label: 'CSV, for spreadsheets', type: 'text/csv', write: csv },
  jsonl: { label: 'JSON lines, for programs', type: 'application/jsonl', write: jsonLines },
} as const

type Format = keyof typeof formats

// pause waits until a busy server takes the next request.
const pause = (seconds: number, signal: AbortSignal) =>
  new Promise<void>((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1_000)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      reject(signal.reason as Error)
    })
  })

// patient reads as get does, and waits where the server asks for it.
async function patient<T>(...[to, query, signal]: Parameters<typeof get>): Promise<T> {
  for (;;) {
    try {
      return await get<T>(to, query, signal)
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 429) throw error
      await pause(error.retryAfter ?? 1, signal!)
    }
  }
}

// save has the browser write a file.
function save(name: string, type: string, text: string) {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([text], { type }))
  link.download = name
  link.click()
  URL.revokeObjectURL(link.href)
}

function ExportDialog({ name, to, query = {}, onClose }: ExportProps & { onClose: () => void }) {
  const [format, setFormat] = useState<Format>('csv')
  const [state, setState] = useState<{ count: number; is: 'running' | 'done' | 'cut' | 'cancelled' | 'failed' }>()
  const [error, setError] = useState<unknown>()
  const running = useRef<AbortController>(undefined)
  useEffect(() => () => running.current?.abort(), [])
  const run = async () => {
    const ended = new AbortController()
    running.current = ended
    const rows: Json[] = []
    setError(undefined)
    setState({ count: 0, is: 'running' })
    try {
      for await (const page of pages<Json>(to, query, ended.signal, patient)) {
        rows.push(...page.slice(0, most - rows.length))
        setState({ count: rows.length, is: 'running' })
        if (rows.length >= most) break
      }
      const { type, write } = formats[format]
      save(`countersign-${name}-${new Date().toISOString().slice(0, 10)}.${format}`, type, write(rows))
      setState({ count: rows.length, is: rows.length >= most ? 'cut' : 'done' })
    } catch (problem) {
      if (!ended.signal.aborted) setError(problem)
      setState({ count: rows.length, is: ended.signal.aborted ? 'cancelled' : 'failed' })
    }
  }
  const busy = state?.is === 'running'
  const count = state?.count.toLocaleString('en')
  return (
    <Dialog
      title={`Export ${name.replaceAll('-', ' ')}`}
      onClose={onClose}
      mustAnswer={busy}
      actions={
        busy ? (
          <Button icon="cross" onClick={() => running.current?.abort()}>
            Cancel
          </Button>
        ) : (
          <>
            <Button kind="primary" onClick={() => void run()}>
              Export
            </Button>
            <Button onClick={onClose}>Close</Button>
          </>
        )
      }
    >
      <div className="stack">
        <Field
          label="Format"
          hint={
            format === 'csv'
              ? 'An apostrophe is put before text that a spreadsheet would run.'
              : 'One object a line, with the exact values.'
          }
        >
          {(wiring) => (
            <select {...wiring} value={format} onChange={(event) => setFormat(event.target.value as Format)}>
              {Object.entries(formats).map(([value, { label }]) => (
                <option key={value} value={value}>
                  {label}
                </option>
              ))}
            </select>
          )}
        </Field>
        <p className="muted">The whole list with its filter, as far as your role may see it.</p>
        <p role="status">
          {state?.is === 'running' && `Reading… ${count} so far.`}
          {state?.is === 'done' && `Saved: ${count}.`}
          {state?.is === 'cut' && `Saved the first ${count}. A narrower filter finds the others.`}
          {state?.is === 'cancelled' && `Cancelled after ${count}. No file was saved.`}
        </p>
        {error !== undefined && <ProblemNote error={error} what={`Stopped after ${count}; no file was saved`} />}
      </div>
    </Dialog>
  )
}
