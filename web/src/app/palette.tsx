import { useQuery } from '@tanstack/react-query'
import { type KeyboardEvent, useDeferredValue, useEffect, useId, useMemo, useRef, useState } from 'react'
import { useLocation } from 'wouter'
import { get } from '../lib/client'
import { type Binding, type CommandID, commandIDs, table } from '../lib/keys'
import { useSaved } from '../lib/saved'
import { shown } from '../lib/text'
import { Dialog, Icon, Keys, ProblemNote } from '../ui'
import { type Found, whereIs } from './found'

interface Entry {
  key: string
  label: string
  note?: string | undefined
  shortcut?: string | undefined
  run?: () => void
}

// Palette finds things by their ids and names, and lists every command with its key, and why it is not possible now.
export function Palette({ commands, onClose }: { commands: ReadonlyMap<CommandID, Binding>; onClose: () => void }) {
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const [, go] = useLocation()
  const id = useId()
  const list = useRef<HTMLUListElement>(null)
  const asked = useDeferredValue(text.trim())
  const search = useQuery({
    queryKey: ['search', asked],
    queryFn: ({ signal }) => get<{ items: Found[] }>('/api/v1/search', { q: asked }, signal),
    enabled: asked.length >= 2,
    staleTime: 30_000,
    placeholderData: (before) => before,
  })
  const [views] = useSaved()
  const entries = useMemo(() => {
    const wanted = text.trim().toLowerCase()
    const given: Entry[] = commandIDs
      .filter((command) => command !== 'palette' && table[command].label.toLowerCase().includes(wanted))
      .map((command) => {
        const binding = commands.get(command)
        return {
          key: `command ${command}`,
          label: table[command].label,
          shortcut: table[command].keys[0],
          note: binding ? binding.whyNot : 'Not in this view.',
          ...(binding && !binding.whyNot ? { run: binding.run } : {}),
        }
      })
    const saved: Entry[] = views
      .filter((one) => one.name.toLowerCase().includes(wanted))
      .map((one) => ({ key: `view ${one.name}`, label: one.name, note: 'saved view', run: () => go(one.path) }))
    const found: Entry[] = (asked.length >= 2 ? (search.data?.items ?? []) : []).map((one) => {
      const path = whereIs(one)
      return {
        key: `${one.kind} ${one.id}`,
        label: one.label,
        note: one.kind.replace('_', ' '),
        ...(path ? { run: () => go(path) } : {}),
      }
    })
    // What the search brings later stands behind what is there at once: nothing moves under the hand.
    return [...saved, ...given.filter((entry) => entry.run), ...found, ...given.filter((entry) => !entry.run)]
  }, [text, asked, search.data, commands, go, views])
  const chosen = Math.min(at, entries.length - 1)
  useEffect(
    () => void list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' }),
    [chosen],
  )

  const run = (entry: Entry | undefined) => {
    if (!entry?.run) return
    onClose()
    // After the dialog gave the focus back.
    setTimeout(entry.run)
  }
  const keys = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step) setAt((chosen + step + entries.length) % entries.length)
    else if (event.key === 'Enter' && !event.nativeEvent.isComposing) run(entries[chosen])
    else return
    event.preventDefault()
  }
  return (
    <Dialog title="Find anything, or run a command" kind="palette" onClose={onClose}>
      <div className="palette-head">
        <Icon name="search" />
        <input
          autoFocus
          role="combobox"
          aria-label="Find anything, or run a command"
          aria-expanded="true"
          aria-controls={id}
          aria-autocomplete="list"
          aria-activedescendant={entries[chosen] ? `${id}-${chosen}` : undefined}
          placeholder="Words, an id, a person, a command"
          value={text}
          maxLength={200}
          spellCheck={false}
          autoComplete="off"
          onChange={(event) => {
            setText(event.target.value)
            setAt(0)
          }}
          onKeyDown={keys}
        />
      </div>
      <ul className="palette-list" role="listbox" id={id} ref={list} aria-label="Found">
        {entries.map((entry, index) => (
          <li
            key={entry.key}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === chosen}
            aria-disabled={!entry.run || undefined}
            className="palette-row"
            onClick={() => run(entry)}
          >
            <span className="grow cut">{shown(entry.label)}</span>
            {entry.note && <span className="muted small">{entry.note}</span>}
            {entry.shortcut && <Keys of={entry.shortcut} />}
          </li>
        ))}
      </ul>
      {entries.length === 0 && (
        <p className="loading" role="status">
          {search.isFetching ? 'Searching…' : 'No results.'}
        </p>
      )}
      {search.isError && asked.length >= 2 && <ProblemNote error={search.error} what="The search" />}
    </Dialog>
  )
}
