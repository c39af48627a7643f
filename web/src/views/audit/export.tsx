import { useMutation } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { Problem, path } from '../../lib/client'
import { Button, Field, ProblemNote } from '../../ui'
import { Command } from '../../ui/command'
import { closingOf } from './closing'

// Export writes the events of a range into a file of JSON lines, a page after the other.
export function Export() {
  const [since, setSince] = useState('')
  const [until, setUntil] = useState('')
  const [events, setEvents] = useState(0)
  const [file, setFile] = useState<string>()
  const stop = useRef<AbortController>(undefined)
  const wrong = since && until && since >= until ? 'The end must be later than the begin.' : undefined
  const running = useMutation<boolean, Error>({
    mutationFn: async () => {
      const controller = new AbortController()
      const { signal } = controller
      stop.current = controller
      const parts: Blob[] = []
      setEvents(0)
      setFile(undefined)
      try {
        for (let cursor = '', all = 0; ; ) {
          const time = (local: string) => (local ? new Date(local).toISOString() : '')
          const to = path('/api/v1/audit/events', { since: time(since), until: time(until), cursor })
          const answer = await fetch(to, { signal, redirect: 'error' })
          if (!answer.ok)
            throw new Problem(answer.status, (await answer.json()) as Record<string, unknown>, answer.headers)
          const page = await answer.blob()
          const closing = await closingOf(page)
          parts.push(page)
          all += closing.events
          setEvents(all)
          if (!closing.next_cursor) break
          cursor = closing.next_cursor
        }
      } catch (error) {
        if (signal.aborted) return false
        throw error
      }
      setFile(URL.createObjectURL(new Blob(parts, { type: 'application/jsonl' })))
      return true
    },
  })
  useEffect(() => () => stop.current?.abort(), [])
  useEffect(() => () => void (file && URL.revokeObjectURL(file)), [file])
  return (
    <section className="panel stack" aria-labelledby="export">
      <h2 id="export">Export a range</h2>
      <p className="muted">
        One event a line, oldest first, with the hash that its checkpoint keeps. Each part ends with a line that has the
        head of the chain.
      </p>
      <div className="fields">
        <Field label="Since" hint="In this browser's time zone. Empty for the first event.">
          {(wiring) => (
            <input {...wiring} type="datetime-local" value={since} onChange={(e) => setSince(e.target.value)} />
          )}
        </Field>
        <Field label="Until" hint="Empty for the newest event." error={wrong}>
          {(wiring) => (
            <input {...wiring} type="datetime-local" value={until} onChange={(e) => setUntil(e.target.value)} />
          )}
        </Field>
      </div>
      <div className="row">
        {running.isPending ? (
          <Button icon="cross" onClick={() => stop.current?.abort()}>
            Cancel
          </Button>
        ) : (
          <Button kind="primary" whyNot={wrong} onClick={() => running.mutate()}>
            Export
          </Button>
        )}
        {file && (
          <a className="button" href={file} download="audit.jsonl">
            Save audit.jsonl
          </a>
        )}
        <span role="status">
          {(running.isPending || file) && `${events.toLocaleString('en')} events${running.isPending ? '…' : ''}`}
          {running.data === false && 'Cancelled.'}
        </span>
      </div>
      {running.error && <ProblemNote error={running.error} what="The events were not exported" />}
      <Command of="countersign audit export" />
    </section>
  )
}
