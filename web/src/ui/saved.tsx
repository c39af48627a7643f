// The saved views of a list, above it.
import { type FormEvent, useState } from 'react'
import { Link, useLocation, useSearch } from 'wouter'
import { longest, useSaved, withView } from '../lib/saved'
import { shown } from '../lib/text'
import { Button } from './button'
import { Chip } from './chip'
import { Dialog } from './dialog'
import { Field } from './field'
import { toast } from './toast'

// SavedViews shows the saved views of the list that is open, and the way to save its address. A tight list leaves that
// way to the palette.
export function SavedViews({ tight }: { tight?: boolean }) {
  const [location] = useLocation()
  const search = useSearch()
  const [views, store] = useSaved()
  const [naming, setNaming] = useState(false)
  const path = search ? `${location}?${search}` : location
  const here = views.filter((one) => one.path.split('?')[0] === location)
  if (tight && here.length === 0) return null
  return (
    <nav className="row" aria-label="Saved views">
      {here.map((one) => (
        <Chip
          key={one.name}
          removeLabel={`Remove the view ${shown(one.name)}`}
          onRemove={() => {
            store(views.filter((each) => each !== one))
            toast({ text: `${shown(one.name)} is removed.`, action: { label: 'Undo', run: () => store(views) } })
          }}
        >
          <Link href={one.path} aria-current={one.path === path ? 'page' : undefined}>
            {shown(one.name)}
          </Link>
        </Chip>
      ))}
      {!tight && (
        <Button kind="quiet" onClick={() => setNaming(true)}>
          Save this view…
        </Button>
      )}
      {naming && <SaveView path={path} onClose={() => setNaming(false)} />}
    </nav>
  )
}

// SaveView names an address.
export function SaveView({ path, onClose }: { path: string; onClose: () => void }) {
  const [views, store] = useSaved()
  const [name, setName] = useState('')
  const next = name.trim() ? withView(views, { name: name.trim(), path }) : 'Enter a name.'
  const whyNot = typeof next === 'string' ? next : undefined
  const save = (event?: FormEvent) => {
    event?.preventDefault()
    if (typeof next === 'string') return
    store(next)
    toast({ text: `${shown(name.trim())} is saved in this browser.` })
    onClose()
  }
  return (
    <Dialog
      title="Save this view"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" whyNot={whyNot} onClick={() => save()}>
            Save
          </Button>
        </>
      }
    >
      <form className="stack" onSubmit={save}>
        <Field label="Name" hint="A view of the same name is replaced." error={name.trim() ? whyNot : undefined}>
          {(wiring) => (
            <input
              {...wiring}
              value={name}
              maxLength={longest}
              autoComplete="off"
              onChange={(event) => setName(event.target.value)}
            />
          )}
        </Field>
        <p className="muted">
          The address is kept in this browser: <code>{shown(path)}</code>
        </p>
      </form>
    </Dialog>
  )
}
