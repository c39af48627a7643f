// The do-not-contact list: search, check, add, remove, import and export.
import { useInfiniteQuery, useMutation } from '@tanstack/react-query'
import { type FormEvent, type ReactNode, useState } from 'react'
import { get, Problem, post, request, type Schemas } from '../../lib/client'
import { useMay } from '../../lib/me'
import { configChanged } from '../../lib/query'
import { shown } from '../../lib/text'
import {
  Ask,
  Button,
  Chip,
  Command,
  Empty,
  Field,
  Loading,
  ProblemNote,
  Sending,
  Sheet,
  Table,
  Time,
  toast,
} from '../../ui'
import { csvOf, placeOf } from './import'

type Contact = Schemas['StoredContact']
type Kind = Schemas['ContactKind']
interface Count {
  added: number
  changed: number
  removed: number
}

const to = '/api/v1/do-not-contact'
const list = 'do-not-contact'
const kinds: readonly Kind[] = ['email', 'domain', 'phone', 'handle']

// Addresses stay out of the page's URL, which browsers keep.
export function Contacts() {
  const may = useMay()
  const [prefix, setPrefix] = useState('')
  const [removing, setRemoving] = useState<Contact>()
  const [open, setOpen] = useState<'add' | 'import'>()
  const entries = useInfiniteQuery({
    queryKey: ['config', 'limits', list, prefix],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) =>
      get<{ items: Contact[]; next_cursor: string | null }>(to, { prefix, cursor: pageParam, limit: 100 }, signal),
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  })
  const rows = entries.data?.pages.flatMap((page) => page.items)
  const close = () => setOpen(undefined)
  return (
    <>
      <Check />
      <div className="row">
        <label className="grow">
          <span className="unseen">Search by the beginning</span>
          <input
            type="search"
            value={prefix}
            maxLength={320}
            placeholder="Search by the beginning of an address"
            onChange={(e) => setPrefix(e.target.value)}
          />
        </label>
        <Button whyNot={may('addDoNotContact')} onClick={() => setOpen('add')}>
          Add…
        </Button>
        <Button whyNot={may('importDoNotContact')} onClick={() => setOpen('import')}>
          Import…
        </Button>
        <a className="button" href={`${to}/export`} download>
          Export
        </a>
      </div>
      {entries.isPending && <Loading what="entries" />}
      {entries.error && <ProblemNote error={entries.error} onRetry={() => void entries.refetch()} />}
      {rows?.length === 0 && (
        <Empty title={prefix ? 'No entry begins so' : 'The list is empty'}>
          <p>An action with a recipient on the list is not sent, even if it is approved.</p>
        </Empty>
      )}
      {rows && rows.length > 0 && (
        <Table
          caption="Do-not-contact list"
          rows={rows}
          keyOf={(one) => `${one.kind} ${one.value}`}
          columns={[
            { name: 'Kind', cell: (one) => one.kind, hideNarrow: true },
            { name: 'Value', cell: (one) => <span className="value">{shown(one.value)}</span> },
            { name: 'Reason', cell: (one) => shown(one.reason ?? '') },
            { name: 'From', cell: (one) => shown(one.source ?? ''), hideNarrow: true },
            {
              name: 'Until',
              cell: (one) => (one.expires_at ? <Time at={one.expires_at} /> : 'ever'),
              hideNarrow: true,
            },
            { name: 'Added', cell: (one) => <Time at={one.created_at} />, hideNarrow: true },
            {
              name: 'Remove',
              unnamed: true,
              cell: (one) => (
                <Button whyNot={may('removeDoNotContact')} onClick={() => setRemoving(one)}>
                  Remove…<span className="unseen"> {shown(one.value)}</span>
                </Button>
              ),
            },
          ]}
        />
      )}
      {entries.hasNextPage && (
        <p>
          <Button busy={entries.isFetchingNextPage} onClick={() => void entries.fetchNextPage()}>
            Show more
          </Button>
        </p>
      )}
      <Command of="countersign dnc import FILE --dry-run" />
      {removing && (
        <Ask
          title="Remove this entry?"
          text={`Actions to ${shown(removing.value)} are sent again.`}
          label="Remove"
          note="may"
          hint="The reason, for the audit log."
          send={(note) =>
            post<Count>(`${to}/remove`, { entries: [{ kind: removing.kind, value: removing.value }], note })
          }
          onDone={({ removed }) => {
            toast({ text: removed > 0 ? 'The entry is removed.' : 'The entry was not there any more.' })
            configChanged()
          }}
          onClose={() => setRemoving(undefined)}
        />
      )}
      {open === 'add' && <Add onClose={close} />}
      {open === 'import' && <Import onClose={close} />}
    </>
  )
}

// Check looks up a recipient as it is looked up for an action.
function Check() {
  const [value, setValue] = useState('')
  const may = useMay()
  const check = useMutation<Schemas['ContactCheck'], Problem>({ mutationFn: () => post(`${to}/check`, { value }) })
  const whyNot = may('checkDoNotContact') ?? (value.trim() ? undefined : 'Enter a recipient.')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!whyNot) check.mutate()
  }
  return (
    <form className="panel stack" onSubmit={submit} aria-label="Check a recipient">
      <Field label="Check a recipient" hint="In any form in which an action may have it.">
        {(wiring) => (
          <div className="row">
            <input
              {...wiring}
              className="grow"
              value={value}
              maxLength={1_000}
              onChange={(e) => {
                setValue(e.target.value)
                check.reset()
              }}
            />
            <Button type="submit" whyNot={whyNot} busy={check.isPending} onClick={submit}>
              Check
            </Button>
          </div>
        )}
      </Field>
      {check.error && <ProblemNote error={check.error} what="Not checked" />}
      {check.data && (
        <div role="status" className="stack">
          <p>
            <strong>{check.data.listed ? 'On the list: an action is not sent.' : 'Not on the list.'}</strong>
          </p>
          <ul>
            {check.data.readings.map((one) => (
              <li key={`${one.kind} ${one.value}`} className="row">
                <span className="muted">{one.kind}</span>
                <span className="value">{shown(one.value)}</span>
                {one.listed && <Chip tone="bad">listed</Chip>}
                {one.reason && <span className="muted">{shown(one.reason)}</span>}
              </li>
            ))}
          </ul>
        </div>
      )}
    </form>
  )
}

function Add({ onClose }: { onClose: () => void }) {
  const [draft, setDraft] = useState({ value: '', kind: '', reason: '', until: '' })
  const set = (part: Partial<typeof draft>) => setDraft({ ...draft, ...part })
  const add = useMutation<Count, Problem>({
    mutationFn: () =>
      post(to, {
        entries: [
          {
            value: draft.value.trim(),
            ...(draft.kind && { kind: draft.kind }),
            ...(draft.reason && { reason: draft.reason }),
            ...(draft.until && { expires_at: `${draft.until}T00:00:00Z` }),
          },
        ],
      }),
    onSuccess: ({ added }) => {
      toast({ text: added > 0 ? 'The entry is added.' : 'The entry is changed.' })
      configChanged()
      onClose()
    },
  })
  const whyNot = draft.value.trim() ? undefined : 'Enter a value.'
  const save = () => !whyNot && !add.isPending && add.mutate()
  return (
    <Sheet
      title="Add to the do-not-contact list"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Close</Button>
          <Button kind="primary" command="send" whyNot={whyNot} busy={add.isPending} onClick={save}>
            Add
          </Button>
        </>
      }
    >
      <Sending run={save} whyNot={whyNot} />
      <div className="stack">
        <Field label="Value" hint="ana@example.org, example.org with all below it, +4930123456 or @ana.">
          {(wiring) => (
            <input {...wiring} value={draft.value} maxLength={1_000} onChange={(e) => set({ value: e.target.value })} />
          )}
        </Field>
        <Field label="Kind">
          {(wiring) => (
            <select {...wiring} value={draft.kind} onChange={(e) => set({ kind: e.target.value })}>
              <option value="">detected</option>
              {kinds.map((kind) => (
                <option key={kind}>{kind}</option>
              ))}
            </select>
          )}
        </Field>
        <Field label="Reason" hint="Shown with the actions that are skipped.">
          {(wiring) => (
            <input {...wiring} value={draft.reason} maxLength={500} onChange={(e) => set({ reason: e.target.value })} />
          )}
        </Field>
        <Field label="Until" hint="Empty for ever. The day begins in UTC.">
          {(wiring) => (
            <input {...wiring} type="date" value={draft.until} onChange={(e) => set({ until: e.target.value })} />
          )}
        </Field>
        {add.error && <ProblemNote error={add.error} what="Not added" />}
      </div>
    </Sheet>
  )
}

const mostBytes = 8 * 1024 * 1024

function Import({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState('')
  const { csv, added } = csvOf(text)
  const send = (dry: boolean) =>
    request<Count>('POST', `${to}/import`, { query: dry ? { dry_run: 'true' } : {}, csv }).then((a) => a.body)
  const dry = useMutation<Count, Problem>({ mutationFn: () => send(true) })
  const real = useMutation<Count, Problem>({
    mutationFn: () => send(false),
    onSuccess: (count) => {
      toast({ text: `${count.added} added, ${count.changed} changed.` })
      configChanged()
      onClose()
    },
  })
  const change = (next: string) => {
    setText(next)
    dry.reset()
    real.reset()
  }
  const whyNot = text.trim()
    ? csv.length > mostBytes
      ? 'Longer than 8 MiB: use the command line.'
      : undefined
    : 'Paste a list, or choose a file.'
  const error = real.error ?? dry.error
  let result: ReactNode = null
  if (error)
    result =
      error instanceof Problem && error.errors.some(({ pointer }) => pointer.startsWith('/lines/')) ? (
        <Lines problem={error} added={added} />
      ) : (
        <ProblemNote error={error} what="Not imported" />
      )
  else if (dry.data)
    result = (
      <p role="status">
        <strong>{dry.data.added.toLocaleString('en')}</strong> would be added,{' '}
        <strong>{dry.data.changed.toLocaleString('en')}</strong> changed.
      </p>
    )
  return (
    <Sheet
      title="Import"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Close</Button>
          <Button whyNot={whyNot} busy={dry.isPending} onClick={() => dry.mutate()}>
            Check
          </Button>
          <Button
            kind="primary"
            whyNot={whyNot ?? (dry.data ? undefined : 'Check it first.')}
            busy={real.isPending}
            onClick={() => real.mutate()}
          >
            Import
          </Button>
        </>
      }
    >
      <div className="stack">
        <Field
          label="List"
          hint="A value a line, or CSV whose first line has the names kind,value,reason,source,expires_at."
        >
          {(wiring) => (
            <textarea
              {...wiring}
              className="mono"
              rows={10}
              value={text}
              spellCheck={false}
              onChange={(e) => change(e.target.value)}
            />
          )}
        </Field>
        <Field label="File">
          {(wiring) => (
            <input
              {...wiring}
              type="file"
              accept=".csv,.txt,text/csv,text/plain"
              onChange={(e) => void e.target.files?.[0]?.text().then(change)}
            />
          )}
        </Field>
        {result}
      </div>
    </Sheet>
  )
}

function Lines({ problem, added }: { problem: Problem; added: number }) {
  return (
    <div className="problem" role="alert">
      <div>
        <strong>Nothing would be imported.</strong>
        <ul>
          {problem.errors.map((one) => (
            <li key={one.pointer}>
              {placeOf(one.pointer, added)}: {shown(one.message)}
            </li>
          ))}
        </ul>
      </div>
    </div>
  )
}
