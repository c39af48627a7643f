// The decision: what a person can do with what waits, and why not.
import { useEffect, useRef, useState } from 'react'
import { draftOf } from '../../form/draft'
import { same } from '../../lib/json'
import { useCommands } from '../../lib/keys'
import { useMay } from '../../lib/me'
import { useNow } from '../../lib/time'
import { Button, Field, Shown, State, Time, toast } from '../../ui'
import { AlwaysSheet } from './AlwaysSheet'
import { approve, complaintsOf, deny, edit, told, undo, type Always } from './decide'
import type { Looking } from './Detail'
import type { Action } from './items'
import { recall, remember, useMemory } from './memory'
import { Person } from './Person'
import { onlyApproving, whyNotOf } from './reasons'

// glance is how long an action has to have been open before it can be approved, so that a second press of the key does not
// decide about the next one; look is the same for what is of high risk or cannot be taken back.
const glance = 300
const look = 1_000

function useOpenFor(ms: number): boolean {
  const [over, setOver] = useState(false)
  useEffect(() => {
    setOver(false)
    const timer = setTimeout(() => setOver(true), ms)
    return () => clearTimeout(timer)
  }, [ms])
  return over
}

export interface Deciding {
  busy: boolean
  run: (what: () => Promise<Action>, done: (action: Action) => void) => Promise<void>
}

// useDeciding sends one decision at a time, and says what a refusal means.
export function useDeciding(looking: Looking): Deciding {
  const [busy, setBusy] = useState(false)
  const sending = useRef(false)
  const run: Deciding['run'] = async (what, done) => {
    if (sending.current) return
    sending.current = true
    setBusy(true)
    looking.refuse('', [])
    try {
      done(await what())
    } catch (error) {
      const complaints = complaintsOf(error)
      if (complaints.length) looking.refuse('The tool does not take this', complaints)
      else toast({ text: told(error), tone: 'bad', lastsMs: 0 })
    } finally {
      sending.current = false
      setBusy(false)
    }
  }
  return { busy, run }
}

const takeBack = (id: string) => void undo(id).then(
  () => {
    remember(id, { outcome: { words: 'undone', state: 'denied' } })
    toast({ text: 'Undone: it is not sent.' })
  },
  (error: unknown) => toast({ text: `It could not be undone: ${told(error)}`, tone: 'bad' }),
)

// announce says what an approval came to, with undo as long as nothing is sent.
export function announce(action: Action) {
  const id = action.envelope.action_id
  if (action.phase === 'pending') {
    const left = (action.decision?.approvals_needed ?? 1) - (action.decision?.approvals_given ?? 0)
    remember(id, { outcome: { words: `you agreed, ${left} more must`, state: 'pending' } })
    toast({ text: `You agreed. ${left} more must agree.` })
    return
  }
  remember(id, { outcome: { words: 'approved by you', state: 'approved' } })
  const when = action.waiting?.until ?? action.next_attempt_at
  toast({
    text: <>Approved{when && new Date(when).getTime() > Date.now() + 2_000 ? <>, goes out <Time at={when} as="clock" /></> : ''}.</>,
    action: { label: 'Undo', command: 'undo', run: () => takeBack(id) },
  })
  lastApproved = id
}

let lastApproved: string | undefined

// undoLast takes back what was approved last, if that is still possible.
export function undoLast() {
  if (lastApproved) takeBack(lastApproved)
  lastApproved = undefined
}

export function Bar(looking: Looking) {
  const { id, action, item, etag, stale, unread, onDecided } = looking
  const memory = useMemory(id)
  const may = useMay()
  const { busy, run } = useDeciding(looking)
  const [always, setAlways] = useState(false)
  const [anyway, setAnyway] = useState(false)
  const grave = action.envelope.risk === 'high' || item?.reversible === false
  const openLong = useOpenFor(grave ? look : glance)
  const over = useOver(action)
  const editing = memory.mode === 'edit' && memory.draft !== undefined
  const changed = memory.draft !== undefined && !same(memory.draft.args, looking.args)

  const role = may('approveAction')
  const unable = over ?? role ?? (stale ? 'It changed since you looked. Look at it first.' : undefined)
  const wrong = Object.entries(memory.draft?.typed ?? {})[0]
  const misfit = wrong ? `${wrong[0]} ${wrong[1].problem}.` : undefined
  const notApprove = unable ?? whyNotOf(item) ?? misfit ?? (openLong ? undefined : 'Read it first: one moment.')
  const barred = item?.may_decide === false && !onlyApproving.includes(item.why_not ?? '') ? whyNotOf(item) : undefined
  const notDeny = unable ?? barred
  const notEdit = unable ?? (['voted', 'own_edit'].includes(item?.why_not ?? '') ? undefined : whyNotOf(item))

  const yes = (grant?: Always) => {
    if (grave && unread.length > 0 && !anyway) return setAnyway(true)
    const args = editing && changed ? memory.draft!.args : undefined
    void run(() => approve(id, recall(id).seen?.etag ?? etag, { note: memory.note, args, always: grant }), (result) => {
      remember(id, { mode: 'look', note: '', draft: undefined, seen: undefined })
      setAlways(false)
      announce(result)
      onDecided()
    })
  }
  const no = () => void run(() => deny(id, recall(id).seen?.etag ?? etag, memory.note), () => {
    remember(id, { mode: 'look', note: '', draft: undefined, outcome: { words: 'denied by you', state: 'denied' } })
    toast({ text: 'Denied. The agent is told.' })
    onDecided()
  })
  const save = () => void run(() => edit(id, recall(id).seen?.etag ?? etag, memory.draft!.args, memory.note), (result) => {
    remember(id, { mode: 'look', note: '', draft: undefined, seen: { etag: result.decision?.etag ?? '', args: result.envelope.args as never, at: Date.now() } })
    toast({ text: 'Saved. It goes on waiting; whoever agreed before has to agree again.' })
  })
  const startEdit = () => remember(id, { mode: 'edit', draft: memory.draft ?? draftOf(looking.args) })
  const leave = () => {
    if (memory.mode === 'edit' && changed) return toast({ text: 'Save or discard what you changed first.' })
    remember(id, { mode: 'look', draft: memory.mode === 'edit' ? undefined : memory.draft })
  }
  const notSave = notEdit ?? misfit ?? (changed ? undefined : 'Nothing is changed.')
  const send = memory.mode === 'deny' ? { run: no, whyNot: notDeny } : editing ? { run: save, whyNot: notSave } : { run: () => yes(), whyNot: notApprove }

  useCommands([
    { id: 'approve', whyNot: notApprove, run: () => yes() },
    { id: 'deny', whyNot: notDeny, run: () => remember(id, { mode: 'deny' }) },
    { id: 'edit', whyNot: notEdit, run: startEdit },
    { id: 'always', whyNot: notApprove ?? (editing && changed ? 'Save what you changed first.' : undefined), run: () => setAlways(true) },
    { id: 'note', whyNot: notApprove && notDeny, run: () => remember(id, { mode: memory.mode === 'edit' ? 'edit' : 'note' }) },
    memory.mode !== 'look' && { id: 'send', ...send },
    memory.mode !== 'look' && { id: 'back', run: leave },
  ])
  if (over) return <Over action={action} over={over} />
  return (
    <footer className="bar" aria-label="Decide">
      {anyway && (
        <p className="banner tone-person" role="alert">
          Long values were not opened: {unread.join(', ')}. Approve again to approve without reading them.{' '}
          <Button onClick={() => { for (const pointer of unread) looking.folds.open(pointer); setAnyway(false) }}>Open them</Button>
        </p>
      )}
      {memory.mode !== 'look' && <Note id={id} mode={memory.mode} />}
      <div className="row">
        {memory.mode === 'deny' ? (
          <>
            <Button kind="danger" command="send" whyNot={notDeny} busy={busy} onClick={no}>Deny</Button>
            <Button onClick={leave}>Do not deny</Button>
          </>
        ) : editing ? (
          <>
            <Button kind="primary" command="send" whyNot={notSave} busy={busy} onClick={save}>Save, keep waiting</Button>
            <Button command="approve" whyNot={notApprove} busy={busy} onClick={() => yes()}>{changed ? 'Approve as changed' : 'Approve'}</Button>
            <Button onClick={() => remember(id, { mode: 'look', draft: undefined })}>Discard</Button>
          </>
        ) : (
          <>
            <Button kind="primary" command="approve" whyNot={notApprove} busy={busy} onClick={() => yes()}>{anyway ? 'Approve anyway' : 'Approve'}</Button>
            <Button kind="danger" command="deny" whyNot={notDeny} onClick={() => remember(id, { mode: 'deny' })}>Deny…</Button>
            <Button command="edit" whyNot={notEdit} onClick={startEdit}>Edit</Button>
            <Button command="always" whyNot={notApprove} onClick={() => setAlways(true)}>Always…</Button>
          </>
        )}
        <span className="faint small bar-seen">{notApprove && <span>{notApprove} </span>}seen <Time at={memory.seen && new Date(memory.seen.at).toISOString()} as="clock" /></span>
      </div>
      {always && <AlwaysSheet looking={looking} busy={busy} onClose={() => setAlways(false)} onGrant={yes} />}
    </footer>
  )
}

// useOver says why nothing can be decided any more.
function useOver(action: Action): string | undefined {
  const ends = action.decision?.expires_at
  const now = useNow(1_000)
  if (action.phase === 'pending') {
    return ends && new Date(ends).getTime() <= now ? 'It is too late: the time to decide is over.' : undefined
  }
  return 'Nobody has to decide about this any more.'
}

function Over({ action, over }: { action: Action; over: string }) {
  const { by, note, at } = action.decision ?? {}
  return (
    <footer className="bar row">
      <State state={action.phase} />
      {by ? <span>by <Person actor={by} />, <Time at={at} as="both" />{note && <> · “<Shown text={note} />”</>}</span> : <span>{over}</span>}
    </footer>
  )
}

const reasons = ['Not now', 'Wrong recipient', 'Ask me first', 'Do this another way: ']

// Note is what the agent is told. It takes the focus, since whoever opens it wants to write.
function Note({ id, mode }: { id: string; mode: 'edit' | 'deny' | 'note' }) {
  const { note } = useMemory(id)
  const ref = useRef<HTMLTextAreaElement>(null)
  useEffect(() => {
    if (mode !== 'edit') ref.current?.focus()
  }, [mode])
  return (
    <div className="note">
      {mode === 'deny' && <p className="row">{reasons.map((reason) => <button type="button" className="chip" key={reason} onClick={() => { remember(id, { note: reason }); ref.current?.focus() }}>{reason.trim()}</button>)}</p>}
      <Field label={mode === 'deny' ? 'What the agent should do instead' : 'Note'} hint={`${note.length > 400 ? `${500 - note.length} characters left · ` : ''}The agent reads this.`}>
        {(wiring) => <textarea {...wiring} ref={ref} rows={2} maxLength={500} value={note} onChange={(e) => remember(id, { note: e.target.value })} />}
      </Field>
    </div>
  )
}
